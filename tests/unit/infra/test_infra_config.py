"""The one configuration: three sources, their order, and every problem at once."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from headrace.infra.configuration.config import Config, config_options, load, load_with_origins
from headrace.infra.configuration.text import to_toml
from headrace.infra.kafka_edge import KafkaFailedError
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.errors import InvalidInputError
from headrace.solver.settings import ClassSettings


def written(folder: Path, text: str) -> Path:
    path = folder / "headrace.toml"
    path.write_text(text, "utf-8")
    return path


def problems_of(path: Path | None = None, env: dict[str, str] | None = None, **flags: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        load_with_origins(path, flags, env or {})
    return caught.value.problems


def test_without_any_source_everything_has_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_with_origins(None, {}, {}).config == Config()


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[solver]\nperiod_ms = 100\nsegments = 4\nttl_ms = 5000\n")
    env = {"HEADRACE_SOLVER__PERIOD_MS": "200", "HEADRACE_SOLVER__SEGMENTS": "5"}
    loaded = load_with_origins(path, {"solver.period_ms": "300"}, env)
    solver = loaded.config.solver
    assert (solver.period_ms, solver.segments, solver.ttl_ms) == (300, 5, 5000)
    assert loaded.origins["solver", "period_ms"] == "--set solver.period_ms"
    assert loaded.origins["solver", "segments"] == "HEADRACE_SOLVER__SEGMENTS"
    assert loaded.origins["solver", "ttl_ms"] == str(path)


def test_the_file_is_the_one_asked_for_else_the_environments_else_the_one_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, named = tmp_path / "here", tmp_path / "named"
    here.mkdir()
    named.mkdir()
    written(here, "[solver]\nsegments = 4\n")
    other = written(named, "[solver]\nsegments = 6\n")
    monkeypatch.chdir(here)
    assert load_with_origins(None, {}, {}).config.solver.segments == 4
    assert load_with_origins(None, {}, {"HEADRACE_CONFIG": str(other)}).config.solver.segments == 6
    assert load_with_origins(Path("headrace.toml"), {}, {"HEADRACE_CONFIG": str(other)}).config.solver.segments == 4


def test_kafka_options_may_be_quoted_or_dotted_and_need_not_be_text(tmp_path: Path) -> None:
    text = '[kafka.options]\n"security.protocol" = "SSL"\nssl.ca.location = "/ca"\nsocket.keepalive.enable = true\n'
    config = load(written(tmp_path, text + "fetch.min.bytes = 7\n"), {"kafka.options.sasl.mechanism": "PLAIN"})
    assert config.kafka.options == {
        "security.protocol": "SSL",
        "ssl.ca.location": "/ca",
        "socket.keepalive.enable": "true",
        "fetch.min.bytes": "7",
        "sasl.mechanism": "PLAIN",
    }


def test_kafka_options_from_the_environment_have_dots_for_underscores() -> None:
    env = {"HEADRACE_KAFKA__OPTIONS__SASL_USERNAME": "ann", "HEADRACE_KAFKA__OPTIONS__SSL__CA_LOCATION": "/ca"}
    options = load_with_origins(None, {}, env).config.kafka.options
    assert options == {"sasl.username": "ann", "ssl.ca.location": "/ca"}


def test_naming_one_class_leaves_the_default_class(tmp_path: Path) -> None:
    config = load(written(tmp_path, "[solver.classes.batch]\ntier = 1\n"))
    assert config.solver.classes == {"default": ClassSettings(), "batch": ClassSettings(tier=1)}


def test_a_class_has_its_work_within_its_bounds(tmp_path: Path) -> None:
    assert load(written(tmp_path, "[solver.classes.batch]\nwork = 4\n")).solver.classes["batch"].work == 4.0
    for value in ("0", "-1", "nan", "1001"):
        with pytest.raises(InvalidInputError, match=r"solver\.classes\.batch\.work"):
            load(written(tmp_path, f"[solver.classes.batch]\nwork = {value}\n"))


def test_names_that_are_no_bare_keys_are_quoted_in_flags() -> None:
    overrides = {'solver.classes."a b".tier': "2", "solver.classes.c": '{"requires": ["tools"]}'}
    classes = load(None, overrides).solver.classes
    assert classes["a b"].tier == 2
    assert classes["c"].requires == ("tools",)


def test_every_problem_of_every_source_is_told_with_value_origin_and_bound(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[kafka]\nbootstrap_servers = "broker"\n[kafka.options]\nacks = 1\n'
        "[solver]\nperod_ms = 1\nttl_ms = 5\nmove_price_ms = nan\n[solver.classes.x]\ntear = 1\n"
        '[topics]\nnames = {weights = "same", fleet = "same"}\n[stream]\na = 1\n[streams]\nwindow_ms = 1000\n',
    )
    env = {"HEADRACE_DATAPLANE__TABLE_SIZE": "big", "HEADRACE_FOO": "1"}
    with pytest.raises(InvalidInputError) as caught:
        load_with_origins(path, {"solver.segments": "1"}, env)
    told = "\n".join(caught.value.problems)
    for expected in (
        f"stream: no such setting; the nearest is streams (from {path})",
        f"solver.perod_ms: no such setting; the nearest is period_ms (from {path})",
        f"solver.classes.x.tear: no such setting; the nearest is tier (from {path})",
        "foo: no such setting; there are",
        "streams.window_ms is 1000; at least",
        f"solver.ttl_ms is 5 (from {path}); it should be greater than or equal to 1000",
        "solver.move_price_ms is nan",
        "solver.segments is '1' (from --set solver.segments); it should be greater than or equal to 2",
        "dataplane.table_size is 'big' (from HEADRACE_DATAPLANE__TABLE_SIZE); it should be a valid integer",
        "kafka.bootstrap_servers has 'broker'; expected host:port",
        "kafka.options.'acks' is '1'; it is always all",
        "topics.names: weights and fleet are both called 'same'",
    ):
        assert expected in told


def test_a_file_that_is_not_there_or_no_toml_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "nowhere.toml") == (
        f"{tmp_path / 'nowhere.toml'} cannot be read: No such file or directory",
    )
    assert "is no TOML" in problems_of(written(tmp_path, "[solver"))[0]


def test_a_value_that_begins_like_json_and_is_none_is_a_problem() -> None:
    assert "begins like JSON and is none" in problems_of(env={"HEADRACE_TOPICS__NAMES": "{weights: a}"})[0]


def test_a_secret_is_in_no_message_and_not_in_the_printed_configuration() -> None:
    env = {"HEADRACE_KAFKA__OPTIONS__SASL_PASSWORD": "hush"}
    loaded = load_with_origins(None, {}, env)
    text = to_toml(loaded.config, loaded.origins)
    assert "hush" not in text + repr(loaded.config)
    assert '"sasl.password" = "***"  # HEADRACE_KAFKA__OPTIONS__SASL_PASSWORD' in text


def test_the_printed_configuration_says_of_each_value_where_it_came_from() -> None:
    flags = {
        "solver.period_ms": "300",
        "solver.classes.batch.requires": '["tools"]',
        "dataplane.fallback.m": '[{"engine_id": "a", "weight": 2}]',
        "solver.classes.batch.residency": "[]",
    }
    loaded = load_with_origins(None, flags, {})
    lines = to_toml(loaded.config, loaded.origins).splitlines()
    for line in (
        "period_ms = 300  # --set solver.period_ms",
        "ttl_ms = 60000  # default",
        'requires = ["tools"]  # --set solver.classes.batch.requires',
        "residency = []  # --set solver.classes.batch.residency",
        "residency = []  # default",
        "weight = 2.0  # --set dataplane.fallback.m",
    ):
        assert line in lines
    assert all("  # " in line for line in lines if " = " in line)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("HEADRACE_KAFKA_BOOTSTRAP_SERVERS", "HEADRACE_KAFKA__BOOTSTRAP_SERVERS"),
        ("HEADRACE_KAFKA_OPTIONS_SASL_USERNAME", "HEADRACE_KAFKA__OPTIONS__SASL_USERNAME"),
        ("HEADRACE_SOLVER__PERIOD__MS", "HEADRACE_SOLVER__PERIOD_MS"),
        ("HEADRACE_SOLVR_PERIOD_MS", "HEADRACE_SOLVER__PERIOD_MS"),
        ("HEADRACE_FOO", None),
    ],
)
def test_a_variable_that_names_no_setting_is_told_with_the_one_that_was_probably_meant(
    wrong: str, right: str | None
) -> None:
    (told,) = problems_of(env={wrong: "1"})
    assert f"did you mean {right}?" in told if right else "no such setting; there are" in told
    assert told.endswith(f"(from {wrong})")


def test_a_value_of_the_wrong_shape_is_told_in_words(tmp_path: Path) -> None:
    text = '[solver.classes.x]\nrequires = "tools"\n[dataplane.fallback]\nm = [{weight = 1}]\n[topics]\nnames = 3\n'
    told = "\n".join(problems_of(written(tmp_path, text)))
    assert "solver.classes.x.requires is 'tools' (from" in told
    assert "it should be a list of strings" in told
    assert "topics.names is 3" in told
    assert "it should be a table of strings" in told
    assert "dataplane.fallback.m.0.engine_id is missing" in told
    assert "tuple" not in told


def test_the_printed_configuration_is_read_back_as_the_same(tmp_path: Path) -> None:
    overrides = {
        "solver.classes.batch.tier": "3",
        "topics.names.weights": "w",
        "kafka.options.linger.ms": "7",
        'dataplane.fallback."llama-3.1-8b"': '[{"engine_id": "a", "weight": 2}, {"engine_id": "b"}]',
    }
    loaded = load_with_origins(None, overrides, {})
    assert load(written(tmp_path, to_toml(loaded.config, loaded.origins))) == loaded.config


def run(*arguments: str) -> tuple[int, str]:
    @click.command()
    @config_options
    def command(*, config: Config) -> None:
        click.echo(f"period {config.solver.period_ms} at {config.kafka.bootstrap_servers}")

    result = CliRunner().invoke(command, arguments)
    return result.exit_code, result.output


def test_a_command_gets_its_configuration_from_its_flags() -> None:
    assert run("--bootstrap", "k:1", "--set", "solver.period_ms=75") == (0, "period 75 at k:1\n")


def test_check_config_checks_and_stops() -> None:
    assert run("--check-config") == (0, "the configuration is right\n")
    assert run("--check-config", "--set", "solver.period_ms=1")[0] == 1


def problems_checked(*settings: str) -> tuple[str, ...]:
    @click.command()
    @config_options
    def command(*, config: Config) -> None:
        raise AssertionError(config)

    flags = [flag for setting in settings for flag in ("--set", f"kafka.options.{setting}")]
    result = CliRunner().invoke(command, ("--check-config", *flags))
    assert isinstance(result.exception, InvalidInputError)
    return result.exception.problems


def test_check_config_makes_the_kafka_clients_and_names_the_option_that_they_refuse() -> None:
    assert problems_checked("security.protocl=SSL") == (
        "kafka.options.'security.protocl' is no option of librdkafka; the nearest is security.protocol",
    )
    (told,) = problems_checked("security.protocol=SASL_SSL")
    assert told.startswith("kafka.options.'sasl.mechanism' is missing; kafka.options.'security.protocol' is 'SASL_SSL'")
    (told,) = problems_checked("socket.timeout.ms=soon")
    assert told.startswith("kafka.options.'socket.timeout.ms': Invalid value")
    (told,) = problems_checked("zzz=1")
    assert "CONFIGURATION.md" in told


def test_a_kafka_client_that_fails_in_a_command_is_a_message_with_the_key_or_the_address() -> None:
    @click.command()
    @click.option("--wrong", is_flag=True)
    @config_options
    def command(*, config: Config, wrong: bool) -> None:
        if wrong:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        admin_client(config.kafka)

    result = CliRunner().invoke(command, ("--set", "kafka.options.security.protocl=SSL"))
    assert isinstance(result.exception, KafkaFailedError)
    assert "kafka.options.'security.protocl' is no option" in str(result.exception)
    result = CliRunner().invoke(command, ("--wrong", "--bootstrap", "k:1"))
    assert isinstance(result.exception, KafkaFailedError)
    assert str(result.exception).startswith("k:1: Broker: Topic authorization failed; `headrace topics diff`")


def test_print_config_says_where_a_value_came_from() -> None:
    status, text = run("--print-config", "--set", "solver.period_ms=75")
    assert status == 0
    assert "period_ms = 75  # --set solver.period_ms\n" in text


def test_a_flag_without_a_value_is_wrong_usage() -> None:
    status, text = run("--set", "solver.period_ms")
    assert status == 2
    assert "'solver.period_ms' is not KEY=VALUE" in text
