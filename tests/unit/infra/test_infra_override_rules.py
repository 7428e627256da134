"""What an override would break is refused with the numbers; what the solver would not obey cannot be forced either."""

from dataclasses import replace

import pytest

from headrace.infra.overrides.rules import Broken, Stands, broken_rules, rule_names
from headrace.infra.overrides.say import edit_of, refusal
from headrace.infra.overrides.share import share_ppm
from headrace.infra.what_if.answer import what_if
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind
from headrace.schemas.weights import PPM, Reason
from headrace.solver.core.problem import Exclusion, Pin, Problem
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from past_ticks import A, shares, solved, three_regions

NOW_MS, HOUR_MS = 1_000_000, 3_600_000
DRAIN = Override(OverrideKind.DRAIN, "engine-c", "ann", "upgrade", NOW_MS, NOW_MS + HOUR_MS)


def pin(cluster: str, engine: str, least: int, most: int | None = None) -> Override:
    """Percent."""
    high = least if most is None else most
    kind, until = OverrideKind.PIN, NOW_MS + HOUR_MS
    return Override(kind, engine, "ann", "trial", NOW_MS, until, cluster, least * PPM // 100, high * PPM // 100)


def standing(problem: Problem, override: Override) -> Stands:
    again = solved(problem)
    edits = edit_of(override, problem)
    answer = what_if(again, edits, SolverSettings(), Glop(), proved=True) if edits else None
    decision = again.tick.decision
    assert decision is not None
    return Stands(tuple(e.engine_id for e in problem.engines), decision.layout.problem, answer)


def broken(problem: Problem, override: Override) -> dict[str, Broken]:
    return {each.rule: each for each in broken_rules(standing(problem, override), override)}


def test_what_holds_breaks_no_rule() -> None:
    assert broken(three_regions(), pin("cluster-a", "engine-b", 5)) == {}
    quiet = replace(three_regions(), rows=tuple(replace(r, demand_rps=20.0) for r in three_regions().rows))
    assert broken(quiet, DRAIN) == {}


def test_pins_of_a_route_add_up_to_a_hundred_percent_at_most() -> None:
    there = replace(three_regions(), pins=(Pin("cluster-a", "engine-b", 0.7, 0.7, "pinned"),))
    found = broken(there, pin("cluster-a", "engine-a", 40))
    assert not found["pin_sum"].forceable
    assert found["pin_sum"].sentence == (
        f"the pins of {A} would add up to 110 %: 40 % to engine-a + 70 % to engine-b; at most 100 %"
    )
    assert "pin_sum" not in broken(there, pin("cluster-a", "engine-a", 30))
    assert "pin_sum" not in broken(there, pin("cluster-a", "engine-b", 90))  # it takes the place of the one there


def test_a_pin_is_no_more_than_the_engine_has_at_todays_demand() -> None:
    found = broken(three_regions(), pin("cluster-b", "engine-c", 80))
    assert found["pin_capacity"].sentence == "80 % of cluster-b's 120.0 RPS is 96.0 RPS; engine-c has 80.0"
    assert not found["pin_capacity"].forceable
    there = replace(three_regions(), pins=(Pin("cluster-c", "engine-c", 1.0, 1.0, "pinned"),))
    beside = broken(there, pin("cluster-b", "engine-c", 50))["pin_capacity"].sentence
    assert beside == "50 % of cluster-b's 120.0 RPS is 60.0 RPS, beside 40.0 of other pins; engine-c has 80.0"


def test_what_is_held_against_capacity_is_work() -> None:
    plain = three_regions()
    long = replace(plain, rows=tuple(replace(r, demand_rps=r.demand_rps / 4, work=4.0) for r in plain.rows))
    for override in (pin("cluster-b", "engine-c", 80), replace(DRAIN, target="engine-b")):
        told, of_work_1 = broken(long, override), broken(plain, override)
        for name in ("pin_capacity", "model_capacity"):
            assert (name in told) == (name in of_work_1)


def test_capacity_is_what_it_is_measured_to_be() -> None:
    plain = three_regions()
    slow = replace(plain.engines[2], factor=0.5, factor_sentence="finishes half of what is stated")
    found = broken(replace(plain, engines=(*plain.engines[:2], slow)), pin("cluster-b", "engine-c", 40))
    assert found["pin_capacity"].sentence.endswith("; engine-c has 40.0 (finishes half of what is stated)")


def test_a_pin_to_an_engine_that_residency_forbids_is_refused_whatever_is_forced() -> None:
    plain = three_regions()
    rows = tuple(replace(row, residency=("eu",)) for row in plain.rows)
    engines = tuple(replace(e, residency=("eu",)) for e in plain.engines[:2])
    made = replace(plain, rows=rows, engines=(*engines, replace(plain.engines[2], residency=("us",))))
    found = broken(made, pin("cluster-a", "engine-c", 10))
    assert found["pin_eligible"].sentence == (
        f"engine-c may serve no route of cluster-a: {A} is RESIDENCY, its residency is us; allowed: eu"
    )
    said = refusal(tuple(found.values()), force=True)
    assert said is not None
    assert "--force" not in said


def test_a_pin_of_an_engine_that_is_out_would_wait_and_may_be_forced() -> None:
    plain = three_regions()
    out = replace(plain.engines[2], exclusion=Exclusion(Reason.STALE, "silent for 20 s"))
    quiet = tuple(replace(r, demand_rps=20.0) for r in plain.rows)
    made = replace(plain, rows=quiet, engines=(*plain.engines[:2], out))
    found = broken(made, pin("cluster-a", "engine-c", 10))
    assert list(found) == ["pin_out"]
    assert refusal(tuple(found.values()), force=False) == (
        "refused: engine-c is out (STALE, silent for 20 s): the pin would wait until it is back; "
        "--force does it all the same"
    )
    assert refusal(tuple(found.values()), force=True) is None
    assert broken(made, pin("cluster-a", "engine-c", 0)) == {}


def test_pins_that_leave_no_room_shed_and_say_so() -> None:
    found = broken(three_regions(), pin("cluster-b", "engine-c", 0, 0))
    assert found == {}  # 200 RPS are left to it and A
    tight = replace(three_regions(), pins=(Pin("cluster-b", "engine-a", 0.0, 0.0, "pinned"),))
    shed = broken(tight, pin("cluster-b", "engine-c", 0, 0))["shed"]
    assert shed.forceable
    assert shed.sentence.startswith("if engine-c gets exactly 0 % of cluster-b, ")
    assert " of 250.0 RPS would be shed, 0.0 now (" in shed.sentence


def test_a_drain_that_leaves_a_model_short_or_a_route_alone_says_whose_and_may_be_forced() -> None:
    found = broken(three_regions(), replace(DRAIN, target="engine-b"))
    assert found["model_capacity"].sentence == (
        "without engine-b there would be 180.0 RPS of capacity, 280.0 now, for 250.0 of llama-3.1-8b"
    )
    assert {name for name, each in found.items() if each.forceable} == {"model_capacity", "shed"}
    plain = three_regions()
    alone = replace(
        plain,
        network_s={link: s for link, s in plain.network_s.items() if link[0] != "cluster-a"}
        | {link: s for link, s in plain.network_s.items() if link == ("cluster-a", plain.engines[0].site)},
    )
    said = broken(alone, replace(DRAIN, target="engine-a"))["model_capacity"].sentence
    assert said == f"without engine-a no engine is left to {A} (90.0 RPS)"


def test_an_engine_or_cluster_that_is_not_there_is_named_with_the_nearest() -> None:
    assert broken(three_regions(), replace(DRAIN, target="engine-d"))["known"].sentence.startswith(
        "'engine-d' is no engine of the fleet; the nearest is engine-"
    )
    found = broken(three_regions(), pin("cluster-q", "engine-a", 5))
    assert found["known"].sentence.startswith("'cluster-q' is no cluster that is heard of; the nearest is cluster-")


def test_a_freeze_lasts_a_day_at_most_and_a_drain_thirty() -> None:
    freeze = Override(OverrideKind.FREEZE, WHOLE_FLEET, "ann", "incident", NOW_MS, NOW_MS + 25 * HOUR_MS)
    (found,) = broken_rules(Stands(("e",)), freeze)
    assert (found.rule, found.sentence, found.forceable) == (
        "length",
        "--for is 1 day 1 hour; 1 minute to 1 day",
        False,
    )
    assert broken_rules(Stands(("e",)), replace(freeze, expires_ms=NOW_MS + 24 * HOUR_MS)) == ()
    assert broken_rules(Stands(("engine-c",)), replace(DRAIN, expires_ms=NOW_MS + 720 * HOUR_MS)) == ()


def test_what_cannot_be_foreseen_is_refused_unless_forced() -> None:
    (found,) = broken_rules(Stands(("engine-c",), not_told="HELD, telemetry lost"), DRAIN)
    assert found == Broken("foreseen", "what comes of it cannot be told: HELD, telemetry lost", forceable=True)


def test_every_rule_is_tried_here() -> None:
    assert rule_names() == (
        "foreseen",
        "known",
        "length",
        "model_capacity",
        "pin_capacity",
        "pin_eligible",
        "pin_out",
        "pin_sum",
        "shed",
    )


@pytest.mark.parametrize(
    ("text", "ppm"),
    [
        ("20%", 200_000),
        ("0%", 0),
        ("100%", PPM),
        ("0.5%", 5_000),
        ("5000ppm", 5_000),
        ("20", None),
        ("101%", None),
        ("-1%", None),
        ("nan%", None),
        ("x%", None),
        ("", None),
    ],
)
def test_a_share_has_its_unit_and_its_bounds(text: str, ppm: int | None) -> None:
    assert share_ppm(text) == ppm


def test_a_pin_in_a_what_if_is_what_the_solver_makes_of_it() -> None:
    override = pin("cluster-a", "engine-b", 25)
    answer = standing(three_regions(), override).answer
    assert answer is not None
    (share,) = (s for s in answer.shares if (s.route, s.engine_id) == (A, "engine-b"))
    assert share.after_ppm == 250_000
    made = replace(three_regions(), pins=(Pin("cluster-a", "engine-b", 0.25, 0.25, "pinned"),))
    assert shares(solved(made, solved(three_regions()).tick.snapshot, 8).tick.snapshot, A)["engine-b"] == 250_000
