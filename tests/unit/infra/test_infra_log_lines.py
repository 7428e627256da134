"""How processes log: one form a line, JSON or text, whoever said it, and never a secret of the configuration."""

import io
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from headrace.infra.configuration.config import Config, config_options, load_with_origins
from headrace.infra.configuration.text import to_toml
from headrace.infra.log.libraries import redirect_library_logs
from headrace.infra.log.lines import open_log
from headrace.infra.log.settings import LogSettings
from headrace.infra.secrets import fields_without_secrets, secrets_of, without_secrets
from headrace.schemas.errors import HeadraceError, InvalidInputError

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="in-the-jaas";'
SET = {
    'kafka.options."sasl.password"': "the-sasl-password",
    'kafka.options."ssl.key.password"': "the-key-password",
    'kafka.options."sasl.jaas.config"': JAAS,
    "registry.url": "https://reader:in-the-url@registry:8081",
    'registry.options."basic.auth.user.info"': "reader:of-the-registry",
    "gateway.engines.one.auth_env": "ENGINE_ONE_KEY",
}
SECRETS = ("the-sasl-password", "the-key-password", "in-the-jaas", "in-the-url", "of-the-registry", "of-engine-one")


@pytest.fixture(autouse=True)
def own_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("ENGINE_ONE_KEY", "of-engine-one")


@pytest.fixture
def config() -> Config:
    return load_with_origins(None, SET, {}).config


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_one_object_with_its_words_first(capsys: pytest.CaptureFixture[str]) -> None:
    open_log(Config()).info("solver ready", epoch=3)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('{"event":"solver ready","level":"info","time":"')
    assert json.loads(line)["epoch"] == 3


def test_a_line_goes_to_the_standard_error_of_its_own_time_and_a_closed_one_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    open_log(Config())
    first.close()
    logging.getLogger("headrace.kafka").error("lost: nobody reads it")
    monkeypatch.setattr(sys, "stderr", second)
    logging.getLogger("headrace.kafka").error("read")
    (line,) = second.getvalue().splitlines()
    assert json.loads(line)["event"] == "read"


def test_for_people_a_line_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    open_log(replace(Config(), log=LogSettings("text"))).warning("engine down", engine="one")
    said = capsys.readouterr().err
    assert "engine down" in said
    assert "engine=one" in said
    assert not said.startswith("{")


def test_what_a_library_logs_is_a_line_of_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    open_log(Config())
    logging.getLogger("aiokafka.cluster").info("not said")
    logging.getLogger("headrace.kafka").warning("broker %s is away", "b:1")
    (said,) = lines(capsys)
    assert (said["event"], said["level"], said["logger"]) == ("broker b:1 is away", "warning", "headrace.kafka")


def test_what_a_library_says_again_and_again_is_said_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    log, at_s = open_log(Config()), [0.0]
    redirect_library_logs(log, lambda: at_s[0])
    for tenth in range(105):
        at_s[0] = tenth / 10
        logging.getLogger("headrace.kafka").error("FAIL [consumer-%d]: refused (after %d ms)", tenth % 2, tenth)
        if tenth == 50:
            logging.getLogger("headrace.kafka").error("another thing")
    said = [(line["event"], line.get("held_back")) for line in lines(capsys)]
    assert said == [
        ("FAIL [consumer-0]: refused (after 0 ms)", None),
        ("another thing", None),
        ("FAIL [consumer-0]: refused (after 100 ms)", 99),
    ]


def test_the_secrets_of_a_configuration_are_all_found(config: Config) -> None:
    assert set(SECRETS) <= set(secrets_of(config))


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_is_in_any_line_however_it_got_there(
    config: Config, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = open_log(replace(config, log=LogSettings(form)))  # type: ignore[arg-type] - one of the two
    for secret in SECRETS:
        log.info(
            "it is %s", secret, field=secret, inner={"list": [f"a {secret} b"], secret: 1}, **{"a.password": "short"}
        )
        log.warning("an object", thing=Path(f"/{secret}"))
        logging.getLogger("headrace.kafka").error("SASL failed for %s", secret)
        error = ValueError(f"cannot log in with {secret}")
        log.error("it raised", exc_info=error)
        logging.getLogger(f"asyncio.{secret}").error("it raised", exc_info=error)
        sys.excepthook(ValueError, error, None)
    said = capsys.readouterr().err
    assert said.count("it raised") == 2 * len(SECRETS)
    assert said.count("ended by an error that nobody expected") == len(SECRETS)
    assert [secret for secret in (*SECRETS, "short") if secret in said] == []


def test_no_secret_is_in_what_is_printed_of_the_configuration(config: Config) -> None:
    told = to_toml(config, {})
    assert [secret for secret in SECRETS if secret in told] == []
    assert 'url = "https://reader:***@registry:8081"' in told


def test_credentials_in_files_are_secrets_too(tmp_path: Path) -> None:
    callers = tmp_path / "callers"
    callers.write_text("ann caller-one\ncaller-two\n\n", "utf-8")
    config = load_with_origins(None, {"gateway.bearer_file": str(callers)}, {}).config
    assert {"caller-one", "caller-two"} <= set(secrets_of(config))


def test_a_word_of_three_letters_is_not_looked_for_in_every_text() -> None:
    config = load_with_origins(None, {'kafka.options."sasl.password"': "ab"}, {}).config
    assert secrets_of(config) == ()
    assert fields_without_secrets({"sasl.password": "ab", "event": "about"}, ()) == {
        "sasl.password": "***",
        "event": "about",
    }


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    assert without_secrets("say abcdef-more", ("abcdef-more", "abcdef")) == "say ***"


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("kafka", ("cannot log in with the-sasl-password at in-the-url",)),
        HeadraceError("reader:of-the-registry is not known"),
        KafkaException(KafkaError(KafkaError._AUTHENTICATION, "me:the-sasl-password was refused")),
    ],
)
def test_no_secret_is_in_the_error_that_a_command_ends_with(error: Exception) -> None:
    @click.command()
    @config_options
    def command(*, config: Config) -> None:
        assert config.kafka.options["sasl.password"] == "the-sasl-password"
        raise error

    sets = [part for key, value in SET.items() for part in ("--set", f"{key}={value}")]
    done = CliRunner().invoke(command, sets)
    told = str(done.exception)
    assert isinstance(done.exception, HeadraceError)
    assert "***" in told
    assert [secret for secret in SECRETS if secret in told] == []
