"""Who may look: the token, the session that it opens, and the names under which no token is needed."""

import pytest

from headrace.infra.console.csp import policy
from headrace.infra.console.gate import MAX_SESSIONS, Gate, is_loopback, token_problem
from headrace.infra.console.query import Query
from headrace.schemas.errors import InvalidInputError

TOKEN = "0123456789abcdef"  # noqa: S105 - a test's own


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]", "LOCALHOST"])
def test_loopback_names_are_this_machines_own(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"])  # noqa: S104 - they are told apart
def test_other_names_are_not(host: str) -> None:
    assert not is_loopback(host)


def test_without_a_token_it_is_asked_for_under_loopback_names_and_configured_ones_only() -> None:
    gate = Gate(None, ("console.example",), 60.0)
    assert all(gate.knows_host(host) for host in ("localhost:8090", "[::1]:8090", "127.0.0.1", "Console.Example:1"))
    assert not any(gate.knows_host(host) for host in ("evil.example:8090", "", "localhost.evil.example"))
    assert gate.lets_in(None, None, 0.0)


def test_with_a_token_nobody_passes_without_it() -> None:
    gate = Gate(TOKEN, (), 60.0)
    assert gate.lets_in(f"Bearer {TOKEN}", None, 0.0)
    assert gate.lets_in(f"bearer  {TOKEN} ", None, 0.0)
    for wrong in (None, "", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ", "Bearer \u00e9"):
        assert not gate.lets_in(wrong, None, 0.0)
    assert not gate.lets_in(None, TOKEN, 0.0)


def test_a_session_lasts_its_time_and_ends_when_it_is_ended() -> None:
    gate = Gate(TOKEN, (), 60.0)
    one, other = gate.open_session(0.0), gate.open_session(0.0)
    assert TOKEN not in one
    assert gate.lets_in(None, one, 59.9)
    assert not gate.lets_in(None, one, 60.0)
    gate.end_session(other)
    assert not gate.lets_in(None, other, 1.0)


def test_sessions_are_bounded_and_the_oldest_goes_first() -> None:
    gate = Gate(TOKEN, (), 60.0)
    names = [gate.open_session(0.0) for _ in range(MAX_SESSIONS + 1)]
    assert not gate.lets_in(None, names[0], 1.0)
    assert gate.lets_in(None, names[1], 1.0)
    assert gate.lets_in(None, names[-1], 1.0)


@pytest.mark.parametrize("token", ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdef\u00e9"])
def test_a_weak_token_is_refused_without_being_said(token: str) -> None:
    problem = token_problem(token)
    assert problem is not None
    assert not token or token not in problem


def test_the_policy_lets_in_nothing_inline_but_the_librarys_own_styles() -> None:
    found = policy("x.id='1',x.textContent='.a{color:red}';y.textContent='label'")
    directives = dict(part.strip().split(" ", 1) for part in found.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["connect-src"] == "'self'"
    assert directives["style-src"].split()[1:] == [
        "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",  # of the empty text
        "'sha256-AYkV/wUaXEz1i9pndN1veIXFHZVFTj4Ojce2rMK7bSc='",
    ]
    assert "unsafe" not in found


def test_every_problem_of_a_request_is_told_at_once() -> None:
    query = Query({"version": "x", "limit": "0", "group": "moon", "what": "1"}, ("version", "limit", "group", "engine"))
    query.version()
    query.count("limit", 5, 10)
    query.choice("group", ("site", "engine"))
    query.needed("engine")
    with pytest.raises(InvalidInputError) as refused:
        query.check()
    said = str(refused.value)
    for part in (
        "'what' is no parameter",
        "version is 'x'",
        "limit is '0'; a whole number from 1 to 10",
        "group is 'moon'",
        "engine is missing",
    ):
        assert part in said
