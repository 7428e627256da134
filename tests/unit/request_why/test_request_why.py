"""`headrace explain-request`: sentences from a key, from a header, and from both."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import DecisionReason, Router
from headrace.dataplane.route_table import build_table
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.commands.explain_request import command
from headrace.infra.gateway.core.decision_header import decision_header
from headrace.infra.gateway_engine.demo import DEMO_CLUSTER, demo_engines_running
from headrace.infra.kafka_edge import UnreachableError
from headrace.infra.request_why.explanation import explain_key, weight_needed
from headrace.infra.request_why.reasons import OF_REASON
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import write_snapshot

SETTINGS = DataPlaneSettings()
NO_BROKER = ("--bootstrap", "127.0.0.1:1")
PREDICTED = "network 1.0 ms, first token after 50 ms, 50% of its capacity in use"
ROUTED_A = 'version="1.7", engine="a", outcome=ROUTED, reason=SLOT, attempt=1'
WEIGHTS = route_weights(shares(a=3, b=1) | {"c": 0}, excluded=("d",), version=7)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "weights.json"
    write_snapshot(file, snapshot(WEIGHTS, route_weights(shares(a=1), cluster="B", version=7)))
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=True)


def problem(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, InvalidInputError)
    return result.exception.problems[0]


def router() -> Router:
    made = Router(SETTINGS, CLUSTER)
    made.apply(snapshot(WEIGHTS))
    return made


def test_every_reason_has_its_sentence() -> None:
    assert set(OF_REASON) == set(DecisionReason)


def test_it_names_the_engine_that_the_router_gives() -> None:
    made = router()
    for i in range(200):
        key = f"session-{i}"
        assert explain_key(WEIGHTS, key, SETTINGS).engine_id == made.route(MODEL, key=key, now_ms=NOW_MS).engine_id


def test_it_says_where_the_session_would_go_if_its_engine_were_down() -> None:
    made = router()
    key = next(k for k in map(str, range(100)) if made.route(MODEL, key=k, now_ms=NOW_MS).engine_id == "a")
    made.set_health("a", up=False)
    (other,) = [s for s in explain_key(WEIGHTS, key, SETTINGS).sentences if s.startswith("Were a down")]
    assert other.startswith(f"Were a down, it would go to {made.route(MODEL, key=key, now_ms=NOW_MS).engine_id}")


def test_a_weight_a_little_above_what_is_needed_gives_the_slot_and_one_below_does_not() -> None:
    table = build_table(WEIGHTS, SETTINGS)
    slot = next(i for i, owner in enumerate(table.slots) if table.by_slot[owner].engine_id == "a")
    needed = weight_needed(table, slot, "b")
    assert 0.25 < needed <= 1.0

    def owner(share: float) -> str | None:
        b = round(share * 1_000_000)
        changed = build_table(route_weights({"a": 1_000_000 - b, "b": b}), SETTINGS)
        return changed.by_slot[changed.slots[slot]].engine_id

    assert (owner(needed - 2e-3), owner(needed)) == ("a", "b")


def test_why_not_another_engine() -> None:
    key = next(str(i) for i in range(100) if explain_key(WEIGHTS, str(i), SETTINGS).engine_id == "a")

    def rather(engine: str) -> str:
        return next(
            s for s in explain_key(WEIGHTS, key, SETTINGS, engine).sentences if s.startswith(("Not", "By these"))
        )

    assert rather("a") == "By these weights it does go to a."
    assert rather("b").startswith("Not to b, which has 25.00% (nearest (CHEAPEST)) and does not hold this slot.")
    assert rather("c").startswith("Not to c, which has 0.00%")
    assert rather("d") == "Not to d, which is excluded: said so (UNHEALTHY)."
    with pytest.raises(InvalidInputError):
        rather("nobody")


def test_a_shed_session_is_told_from_which_ratio_on_it_is_kept() -> None:
    why = explain_key(route_weights(shares(a=1), shed_ratio=1.0), "x", SETTINGS)
    assert (why.engine_id, why.reason) == (None, DecisionReason.SHED)
    assert "100.00% are shed" in why.sentences[-1]


def test_a_route_without_an_eligible_engine_says_who_is_excluded_why() -> None:
    why = explain_key(route_weights({}, excluded=("d",)), "x", SETTINGS)
    assert (why.reason, why.sentences[-1]) == (DecisionReason.NO_ELIGIBLE_ENGINE, "d is excluded: said so (UNHEALTHY).")


def test_the_command_explains_a_key_of_a_snapshot_file(path: Path) -> None:
    result = run("--snapshot", path, "--key", "session-1", "--model", MODEL, "--cluster", CLUSTER)
    assert result.exit_code == 0
    assert result.output.startswith("Route A|m|default, weights of epoch 1 version 7: as planned")


def test_a_header_and_a_key_are_held_against_each_other(path: Path) -> None:
    decision = router().route(MODEL, key="x", now_ms=NOW_MS)
    where = ("--snapshot", path, "--key", "x", "--model", MODEL, "--cluster", CLUSTER)
    same = run("--header", decision_header(decision, decision.engine_id, 1), *where)
    assert same.output.startswith(
        f"ROUTED, SLOT: The session's slot in the route's table belongs to {decision.engine_id}"
    )
    assert "By the" not in same.output
    moved = run("--header", 'version="1.7", engine="z", outcome=ROUTED, reason=REHASH, attempt=2', *where)
    assert "It was attempt 2" in moved.output
    assert f"By the weights alone it would have been {decision.engine_id}" in moved.output
    other = run("--header", 'version="1.3", engine="z", outcome=ROUTED, reason=SLOT, attempt=1', *where)
    assert f"By these weights it would be {decision.engine_id}" in other.output
    assert "Careful: decided by version 1.3; what follows is by 1.7, of 1.7." in other.output


def test_a_header_alone_says_what_was_decided_and_that_the_weights_are_not_at_hand() -> None:
    result = run("--header", "outcome=SHED, reason=THROTTLED, attempt=1", "--json", *NO_BROKER)
    printed = json.loads(result.output)
    assert printed["by_weights"] is None
    first, second = printed["sentences"]
    assert first == f"SHED, THROTTLED: {OF_REASON[DecisionReason.THROTTLED]}"
    assert second.startswith("The weights would say more, and are not at hand: 127.0.0.1:1 does not answer")


def test_a_header_with_weights_says_all_but_the_slot_and_what_that_needs(path: Path) -> None:
    result = run("--header", f"x-headrace-decision: {ROUTED_A}", "--snapshot", path, "--cluster", CLUSTER)
    *told, more = result.output.splitlines()
    assert told == [
        "ROUTED, SLOT: The session's slot in the route's table belongs to a: the usual case.",
        "Route A|m|default, weights of epoch 1 version 7: as planned",
        f"a has 75.00% because: nearest (CHEAPEST; {PREDICTED}).",
        "b has 25.00%: nearest (CHEAPEST).",
        "c has 0.00%: nearest (CHEAPEST).",
        "d is excluded: said so (UNHEALTHY).",
    ]
    assert "add --key, the value of the request's x-session-id header, and --model" in more


def test_every_route_that_the_header_may_be_of_is_told(path: Path) -> None:
    said = run("--header", ROUTED_A, "--snapshot", path).output
    assert "Route A|m|default" in said
    assert "Route B|m|default" in said
    only_a = run("--header", ROUTED_A.replace('"a"', '"b"'), "--snapshot", path).output
    assert "Route B|m|default" not in only_a


def test_a_header_and_another_engine_are_compared_without_a_key(path: Path) -> None:
    def said(other: str) -> str:
        result = run("--header", ROUTED_A, "--snapshot", path, "--cluster", CLUSTER, "--rather-than", other)
        return result.output.splitlines()[-2]

    assert said("b").startswith("Not to b, which has 25.00% of the sessions: nearest (CHEAPEST), 0.0 ms dearer")
    assert said("c").startswith("Not to c, which has no weight")
    assert said("d") == "Not to d, which is excluded: said so (UNHEALTHY)."
    assert said("a") == "It did go to a."
    wrong = problem("--header", ROUTED_A, "--snapshot", path, "--cluster", CLUSTER, "--rather-than", "nobody")
    assert wrong == "'nobody'; the routes that may be meant know a, b, c, d"


def test_what_only_weights_can_say_is_refused_without_any() -> None:
    for more in (("--rather-than", "b"), ("--model", MODEL), ("--cluster", CLUSTER)):
        result = run("--header", ROUTED_A, *more, *NO_BROKER)
        assert isinstance(result.exception, UnreachableError), more


def test_another_version_and_an_engine_that_is_not_there_are_said(path: Path) -> None:
    said = run("--header", ROUTED_A.replace("1.7", "1.3"), "--snapshot", path).output
    assert "Careful: it was decided by version 1.3, and these weights are of 1.7" in said
    gone = run("--header", ROUTED_A.replace('"a"', '"z"'), "--snapshot", path).output
    assert "No route of this snapshot has an engine called z" in gone


def test_an_engine_goes_by_its_configured_alias_too(path: Path) -> None:
    named = ("--set", "gateway.engines.b.alias=blue")
    header = ROUTED_A.replace('"a"', '"blue"')
    said = run("--header", header, "--snapshot", path, "--rather-than", "a", *named).output
    assert "b has 25.00% because: nearest" in said
    key = next(str(i) for i in range(100) if explain_key(WEIGHTS, str(i), SETTINGS).engine_id == "a")
    where = ("--snapshot", path, "--key", key, "--cluster", CLUSTER, "--rather-than", "blue")
    assert "Not to b, which has 25.00%" in run(*where, *named).output


def test_a_header_is_refused_with_everything_that_is_wrong_in_it() -> None:
    result = run("--header", 'version="3", outcome=ROUTD, reason=SLOT, reason=SLOT, attempt=0')
    assert isinstance(result.exception, InvalidInputError)
    assert result.exception.problems == (
        "reason is given twice",
        "outcome is 'ROUTD'; did you mean ROUTED?",
        "version is '3'; expected epoch.version, such as 3.41",
        "attempt is '0'; expected a number from 1 on",
    )


def test_the_weights_of_demo_engines_can_be_explained(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"

    async def engines() -> None:
        async with demo_engines_running(2, Router(SETTINGS, DEMO_CLUSTER), file):
            pass

    asyncio.run(engines())
    said = run("--snapshot", file, "--key", "session-1").output
    assert said.startswith("Route demo|llama-3.1-8b|default, weights of epoch 1 version 1: equal shares")


def test_json_has_the_parts_and_the_sentences(path: Path) -> None:
    printed = json.loads(run("--snapshot", path, "--key", "x", "--model", MODEL, "--cluster", CLUSTER, "--json").output)
    assert printed["by_weights"]["size"] == 16_381
    assert printed["sentences"] == printed["by_weights"]["sentences"]


def test_wrong_questions_are_answered_with_what_there_is(path: Path) -> None:
    assert run().exit_code == 2
    assert run("--key", "").exit_code == 2
    assert problem("--header", " ") == "it is empty"
    assert problem("--snapshot", path, "--key", "x", "--model", MODEL).startswith("any cluster|m|default is several")
    assert problem("--snapshot", path, "--key", "x").startswith("any cluster|any model|default is several routes")
    assert "which has A|m|default, B|m|default" in problem("--snapshot", path, "--key", "x", "--model", "other")
    assert problem("--header", "nonsense").startswith("'nonsense' is no name=value")
