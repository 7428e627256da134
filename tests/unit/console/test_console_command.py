"""`headrace console` at its edges: what it refuses, and that a token is in no log."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.infra.configuration.config import load
from headrace.infra.console.serve import Running
from headrace.schemas.errors import InvalidInputError

TOKEN = "a-token-of-some-length"  # noqa: S105 - a test's own


class Log:
    def info(self, *_: object, **__: object) -> None: ...


def refused(**settings: str) -> str:
    with pytest.raises(InvalidInputError) as error:
        Running(load(overrides={f"console.{name}": value for name, value in settings.items()}), Log())
    return str(error.value)


def test_where_others_reach_it_a_token_is_needed() -> None:
    assert "console.host is '0.0.0.0', which others reach: console.token_file is needed" in refused(host="0.0.0.0")  # noqa: S104 - it is refused


def test_a_token_file_that_cannot_be_used_is_named_and_its_token_is_not_said(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert str(file) in refused(token_file=str(file))
    file.write_text("weak-token\nmore\n")
    said = refused(token_file=str(file))
    assert "10 characters; at least 16" in said
    assert "weak-token" not in said


def test_a_certificate_without_its_key_is_refused() -> None:
    assert "go together" in refused(tls_certificate_file="cert.pem")


def test_a_token_file_opens_others_way_in(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = {"console.host": "0.0.0.0", "console.token_file": str(file)}  # noqa: S104 - with a token
    assert Running(load(overrides=settings), Log()).gate.is_token(TOKEN)


def test_a_listen_address_that_is_none_is_told() -> None:
    done = CliRunner().invoke(headrace, ("console", "--listen", "8090"))
    assert done.exit_code == 2
    assert "'8090' is not HOST:PORT" in done.output


def test_the_help_says_how_to_open_it() -> None:
    done = CliRunner().invoke(headrace, ("console", "--help"))
    assert "http://127.0.0.1:8090/" in done.output
