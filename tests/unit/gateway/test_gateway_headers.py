"""What passes, what is said about a decision, and what a refusal looks like."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.infra.gateway.core.body_budget import BodyBudget
from headrace.infra.gateway.core.bounded_names import BoundedNames
from headrace.infra.gateway.core.decision_header import (
    DecisionHeader,
    decision_header,
    engine_alias,
    parse_decision_header,
)
from headrace.infra.gateway.core.header_rules import (
    credential_text,
    is_event_stream,
    to_client,
    to_engine,
    with_credential,
)
from headrace.infra.gateway.core.model_list import model_list
from headrace.infra.gateway.core.refusal import Refusal, refusal_of
from headrace.schemas.errors import InvalidInputError


def test_an_engine_gets_the_clients_headers_but_not_what_is_between_them_and_us() -> None:
    sent = [
        ("Host", "gateway"),
        ("Authorization", "Bearer ours"),
        ("Content-Length", "7"),
        ("Content-Encoding", "gzip"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Accept-Encoding", "br"),
        ("X-Headrace-Tier", "0"),
        ("X-From-Edge", "yes"),
        ("Content-Type", "application/json"),
        ("traceparent", "00-1-2-01"),
        ("X-Many", "a"),
        ("X-Many", "b"),
    ]
    assert to_engine(sent, frozenset({"x-from-edge"})) == [
        ("Content-Type", "application/json"),
        ("traceparent", "00-1-2-01"),
        ("X-Many", "a"),
        ("X-Many", "b"),
        ("Accept-Encoding", "identity"),
    ]


def test_a_client_learns_nothing_of_the_machines_behind() -> None:
    sent = [
        ("Server", "uvicorn on gpu-17"),
        ("Location", "http://10.0.0.7/"),
        ("Via", "1.1 gpu-17"),
        ("Connection", "close"),
        ("x-headrace-decision", "forged"),
        ("Content-Type", "text/event-stream"),
        ("Retry-After", "7"),
    ]
    assert to_client(sent) == [("Content-Type", "text/event-stream"), ("Retry-After", "7")]


def test_an_engines_credential_replaces_what_stands_under_its_name() -> None:
    headers = [("authorization", "client's"), ("A", "1")]
    assert with_credential(headers, "Authorization", "ours") == [("A", "1"), ("Authorization", "ours")]
    assert credential_text("Authorization", "sk-1\n") == "Bearer sk-1"
    assert credential_text("authorization", "Basic abc") == "Basic abc"
    assert credential_text("x-api-key", "sk-1") == "sk-1"


@pytest.mark.parametrize(
    ("content_type", "is_stream"),
    [("text/event-stream", True), ("Text/Event-Stream; charset=utf-8", True), ("application/json", False)],
)
def test_a_stream_of_events_is_told_by_its_type(content_type: str, is_stream: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_event_stream(CIMultiDict({"content-type": content_type})) is is_stream
    assert not is_event_stream(CIMultiDict())


@pytest.mark.parametrize("name", ["engine-b", "a", "us-east_1.h100", "7"])
def test_a_plain_id_is_its_own_alias(name: str) -> None:
    assert engine_alias(name) == name or name == "7"


@pytest.mark.parametrize(
    "address", ["10.0.0.7", "10.0.0.7:8000", "gpu-7.prod.example.com", "a/b", "host:80", "localhost", "x" * 65]
)
def test_an_id_that_could_be_an_address_is_hidden_behind_a_stable_hash(address: str) -> None:
    alias = engine_alias(address)
    assert alias.startswith("engine-")
    assert len(alias) == 19
    assert alias == engine_alias(address) != engine_alias(address + "x")
    assert engine_alias(address, "west") == "west"


ROUTED = Decision(Outcome.ROUTED, "e", "http://10.0.0.7:80", DecisionReason.SLOT, 3, 41)
DOWN = Decision(Outcome.REFUSED, None, None, DecisionReason.ALL_DOWN, 3, 41, 0.25)


def test_the_decision_header_is_read_back_as_it_was_said() -> None:
    value = decision_header(ROUTED, "engine-b", 2)
    assert value == 'version="3.41", engine="engine-b", outcome=ROUTED, reason=SLOT, attempt=2'
    assert parse_decision_header(value) == DecisionHeader(
        Outcome.ROUTED, DecisionReason.SLOT, "engine-b", 3, 41, attempt=2
    )
    unweighted = Decision(Outcome.REFUSED, None, None, DecisionReason.NO_SNAPSHOT)
    assert decision_header(unweighted, None, 1) == "outcome=REFUSED, reason=NO_SNAPSHOT, attempt=1"
    assert parse_decision_header("outcome=REFUSED, reason=NO_SNAPSHOT").attempt == 1


@pytest.mark.parametrize(
    "value", ["", "nonsense", "outcome=ROUTED", 'version="3", outcome=ROUTED, reason=SLOT', "outcome=X, reason=SLOT"]
)
def test_another_header_is_an_error_that_repeats_it(value: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_decision_header(value)


@given(st.sampled_from(Outcome), st.sampled_from(DecisionReason), st.integers(0, 10**12), st.integers(1, 2))
def test_every_decision_survives_its_header(outcome: Outcome, reason: DecisionReason, n: int, attempt: int) -> None:
    read = parse_decision_header(decision_header(Decision(outcome, "e", None, reason, n, n + 1), "e", attempt))
    assert read == DecisionHeader(outcome, reason, "e", n, n + 1, attempt)


def test_a_refusal_says_when_to_come_back_in_both_units() -> None:
    refused = refusal_of(DOWN)
    assert (refused.status, refused.code) == (503, "all_down")
    assert refused.headers() == {"Retry-After": "1", "retry-after-ms": "250"}
    assert json.loads(refused.body())["error"] == {
        "message": "Every engine that serves this model is down.",
        "type": "server_error",
        "param": None,
        "code": "all_down",
    }
    assert refused.event() == b"data: " + refused.body() + b"\n\n"


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (DecisionReason.NO_SNAPSHOT, 503),
        (DecisionReason.UNKNOWN_ROUTE, 404),
        (DecisionReason.NO_ELIGIBLE_ENGINE, 503),
        (DecisionReason.ALL_DOWN, 503),
        (DecisionReason.NO_OTHER_ENGINE, 503),
        (DecisionReason.INVALID_REQUEST, 400),
    ],
)
def test_every_reason_to_refuse_has_its_status(reason: DecisionReason, status: int) -> None:
    assert refusal_of(Decision(Outcome.REFUSED, None, None, reason, retry_after_s=1.0)).status == status


def test_whatever_is_shed_is_429_so_that_clients_back_off() -> None:
    for reason in DecisionReason:
        refused = refusal_of(Decision(Outcome.SHED, None, None, reason, 1, 1, 5.0))
        assert (refused.status, refused.kind, refused.code) == (429, "rate_limit_error", reason.value.lower())
        assert refused.headers()["Retry-After"] == "5"


def test_what_is_wrong_with_a_request_is_not_worth_trying_again() -> None:
    for refused in (Refusal.bad_request("x"), Refusal.unauthorized(), Refusal.too_large(7), Refusal.unknown_model("x")):
        assert refused.headers() == {}
        assert 400 <= refused.status < 500
    for refused in (Refusal.overloaded("x"), Refusal.lost(), Refusal.without_address()):
        assert refused.headers()["Retry-After"] == "1"
    assert "connect took more than 2.5 s" in Refusal.timed_out("connect", 2.5).message
    assert Refusal.broken().code == "engine_lost"


def test_bodies_share_one_bound() -> None:
    budget = BodyBudget(10)
    assert budget.reserve(6)
    assert not budget.reserve(5)
    assert budget.reserve(4)
    budget.release(6)
    assert budget.reserved == 4
    assert budget.reserve(6)


def test_names_beyond_the_bound_are_other_and_the_first_ones_stay() -> None:
    names = BoundedNames(2)
    assert [names.name(n) for n in ("a", "b", "c", "a", "c")] == ["a", "b", "other", "a", "other"]


def test_models_are_listed_sorted_in_openais_shape() -> None:
    assert model_list({"b", "a"}, 7) == {
        "object": "list",
        "data": [
            {"id": "a", "object": "model", "created": 7, "owned_by": "headrace"},
            {"id": "b", "object": "model", "created": 7, "owned_by": "headrace"},
        ],
    }
