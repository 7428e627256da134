"""`headrace explain-request`: sentences from a key, from a header, and from both."""

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
from headrace.infra.request_why.explanation import explain_key, weight_needed
from headrace.infra.request_why.reasons import OF_REASON
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import write_snapshot

SETTINGS = DataPlaneSettings()
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
        return next(s for s in explain_key(WEIGHTS, key, SETTINGS, engine).sentences if s.startswith(("Not", "It did")))

    assert rather("a") == "It did go to a."
    assert rather("b").startswith("Not to b, which has 25.00% (nearest; CHEAPEST) and does not hold this slot.")
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


def test_a_header_alone_needs_no_snapshot() -> None:
    result = run("--header", "outcome=SHED, reason=THROTTLED, attempt=1", "--json")
    printed = json.loads(result.output)
    assert printed["by_weights"] is None
    assert printed["sentences"] == [f"SHED, THROTTLED: {OF_REASON[DecisionReason.THROTTLED]}"]


def test_json_has_the_parts_and_the_sentences(path: Path) -> None:
    printed = json.loads(run("--snapshot", path, "--key", "x", "--model", MODEL, "--cluster", CLUSTER, "--json").output)
    assert printed["by_weights"]["size"] == 16_381
    assert printed["sentences"] == printed["by_weights"]["sentences"]


def test_wrong_questions_are_answered_with_what_there_is(path: Path) -> None:
    assert run().exit_code == 2
    assert run("--key", "x").exit_code == 2
    assert problem("--snapshot", path, "--key", "x", "--model", MODEL).startswith("any cluster|m|default is in several")
    assert "which has A|m|default, B|m|default" in problem("--snapshot", path, "--key", "x", "--model", "other")
    assert problem("--header", "nonsense").startswith("'nonsense' is no name=value")
