"""Callers' credentials, and the engines'."""

from pathlib import Path

import pytest

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.infra.gateway.core.bearer import caller_of, parse_credentials
from headrace.infra.gateway.engines import Engines
from headrace.infra.gateway.settings import EngineAccess
from headrace.schemas.errors import InvalidInputError

FILE = "# callers\nsearch sk-search-1\n\nsk-nameless-2\n"


def test_a_caller_is_known_by_its_credential() -> None:
    known = parse_credentials(FILE, "callers")
    assert caller_of("Bearer sk-search-1", known) == "search"
    assert caller_of("bearer  sk-nameless-2 ", known) == "line-4"


@pytest.mark.parametrize(
    "given", [None, "", "sk-search-1", "Basic sk-search-1", "Bearer", "Bearer sk-search-", "Bearer \udc80"]
)
def test_anything_else_is_nobody(given: str | None) -> None:
    assert caller_of(given, parse_credentials(FILE, "callers")) is None


def test_more_callers_than_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.infra.gateway.core.bearer.MAX_CREDENTIALS", 1)
    with pytest.raises(InvalidInputError, match="2 credentials; at most 1"):
        parse_credentials(FILE, "callers")


def test_the_file_itself_is_not_kept() -> None:
    assert "sk-search-1" not in str(parse_credentials(FILE, "callers"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no credential"),
        ("# nothing", "holds no credential"),
        ("short", "line 1: the credential has 5 characters; at least 8"),
        ("a b c", "line 1 has 3 words"),
        ("a|b sk-12345678", "line 1: the name is 'a|b'"),
        ("sk-12345678\nx sk-12345678", "line 2: the credential was given before"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_without_repeating_a_credential(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse_credentials(text, "callers")
    assert problem in str(raised.value)
    assert "sk-12345678" not in str(raised.value)


def decision(engine_id: str, address: str | None) -> Decision:
    return Decision(Outcome.ROUTED, engine_id, address, DecisionReason.SLOT, 1, 1)


def test_an_engines_address_alias_and_credential(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    engines = Engines(
        {
            "a": EngineAccess(address="https://elsewhere:1/", alias="west-1", auth_file=str(file)),
            "b": EngineAccess(auth_header="x-api-key", auth_env="KEY_B"),
            "*": EngineAccess(auth_env="KEY"),
            "open": EngineAccess(),
        },
        {"KEY": "Bearer sk-env", "KEY_B": "plain"},
    )
    a = engines.reach(decision("a", "http://a:8000"))
    assert a is not None
    assert (a.base_url, a.alias, a.credential) == ("https://elsewhere:1", "west-1", ("authorization", "Bearer sk-file"))
    b = engines.reach(decision("b", "b:8000"))
    assert b is not None
    assert (b.base_url, b.alias, b.credential) == ("http://b:8000", "b", ("x-api-key", "plain"))
    other = engines.reach(decision("other", "http://o:1"))
    assert other is not None
    assert other.credential == ("authorization", "Bearer sk-env")
    unlocked = engines.reach(decision("open", "http://o:1"))
    assert unlocked is not None
    assert unlocked.credential is None


def test_an_engine_without_an_address_or_a_decision_without_an_engine_is_none() -> None:
    engines = Engines({}, {})
    assert engines.reach(decision("a", None)) is None
    assert engines.reach(Decision(Outcome.REFUSED, None, None, DecisionReason.ALL_DOWN)) is None


def test_a_changed_address_is_followed() -> None:
    engines = Engines({}, {})
    first, second = engines.reach(decision("a", "http://one:1")), engines.reach(decision("a", "http://two:2"))
    assert first is not None
    assert second is not None
    assert (first.base_url, second.base_url) == ("http://one:1", "http://two:2")


def test_all_unusable_credentials_are_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("one\ntwo\n")
    access = {
        "a": EngineAccess(auth_file=str(tmp_path / "none")),
        "b": EngineAccess(auth_env="NOT_SET"),
        "c": EngineAccess(auth_file=str(file)),
    }
    with pytest.raises(InvalidInputError) as raised:
        Engines(access, {})
    assert [problem.split(" ")[0] for problem in raised.value.problems] == ["a.auth_file", "b.auth_env", "c:"]
