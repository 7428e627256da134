"""A route keeps its old record while all that a gateway acts on is as it was; each kind of change makes a new one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headrace.schemas.weights import Reason, Snapshot
from headrace.solver.core.problem import Exclusion, Pin, Problem
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

LINKS: dict[tuple[str, str], float | None] = {("c", "s1"): 1.0, ("c", "s2"): 900.0, ("d", "s1"): 1.0}


def fleet() -> Problem:
    """Two clusters beside one engine; only c reaches another far away, and one that is drained."""
    engines = [
        engine("far", "s2"),
        engine("near", address="10.0.0.1:80"),
        engine("out", exclusion=drained("yesterday")),
    ]
    return problem([row("c", 2.0), row("d", 2.0)], engines, LINKS)


def drained(when: str, reason: Reason = Reason.DRAINED) -> Exclusion:
    return Exclusion(reason, f"drained {when}")


def tick(made: Problem, previous: Snapshot | None = None) -> Tick:
    version = 1 if previous is None else previous.commit.version + 1
    return solve_tick(made, previous, SolverSettings(), Glop(1), TickStamp(1, version, 500 * version))


def with_engine(made: Problem, name: str, **changes: object) -> Problem:
    engines = tuple(replace(e, **changes) if e.engine_id == name else e for e in made.engines)  # type: ignore[arg-type]
    return replace(made, engines=engines)


def with_row(made: Problem, cluster: str, **changes: object) -> Problem:
    rows = tuple(replace(r, **changes) if r.route.cluster == cluster else r for r in made.rows)  # type: ignore[arg-type]
    return replace(made, rows=rows)


def with_pin(made: Problem, engine_id: str, share: float) -> Problem:
    return replace(made, pins=(Pin("c", engine_id, share, share, "pinned by ann until noon: trial"),))


CHANGES: dict[str, tuple[Callable[[Problem], Problem], set[str]]] = {
    "nothing": (lambda p: p, set()),
    "demand by 4 %": (lambda p: with_row(p, "c", demand_rps=2.08), set()),
    "another sentence of an exclusion": (lambda p: with_engine(p, "out", exclusion=drained("today")), set()),
    "demand by 6 %": (lambda p: with_row(p, "c", demand_rps=2.12), {"c"}),
    "demand that is held": (lambda p: with_row(p, "d", demand_held=True), {"d"}),
    "tier": (lambda p: with_row(p, "d", tier=1), {"d"}),
    "address": (lambda p: with_engine(p, "near", address="10.0.0.2:80"), {"c", "d"}),
    "address in the fallback alone": (lambda p: with_engine(p, "far", address="10.9.9.9:80"), {"c"}),
    "nominal capacity in the fallback alone": (
        lambda p: with_engine(p, "far", capacity_rps_per_replica=11.0, factor=10.0 / 11.0),
        {"c"},
    ),
    "reason of an exclusion": (
        lambda p: with_engine(p, "out", exclusion=drained("today", Reason.UNHEALTHY)),
        {"c", "d"},
    ),
    "a promise of first tokens that is twice as long": (
        lambda p: replace(p, profiles={"p": replace(p.profiles["p"], ttft_s=(0.2, 0.2, 0.6))}),
        {"c", "d"},
    ),
    "a promise that is a tenth longer": (
        lambda p: replace(p, profiles={"p": replace(p.profiles["p"], ttft_s=(0.11, 0.11, 0.33))}),
        set(),
    ),
    "a pin of what it is anyway": (lambda p: with_pin(p, "near", 1.0), {"c"}),
    "a pin of nothing": (lambda p: with_pin(p, "far", 0.0), {"c"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_route_is_new_where_one_thing_that_counts_is_new(name: str) -> None:
    change, expected = CHANGES[name]
    before = tick(fleet())
    after = tick(change(fleet()), before.snapshot)
    assert {key.decode().partition("|")[0] for key in after.changed} == expected
    # And once it is told, it stands.
    assert tick(change(fleet()), after.snapshot).changed == frozenset()


def test_a_route_is_new_when_its_pin_is_gone() -> None:
    before = tick(with_pin(fleet(), "near", 1.0))
    assert {key.decode().partition("|")[0] for key in tick(fleet(), before.snapshot).changed} == {"c"}


def test_a_retry_budget_that_is_used_up_is_told_however_little_was_left_of_it() -> None:
    alone = [engine("near")]
    before = tick(problem([row("d", 9.45)], alone, LINKS))
    (route,) = before.snapshot.routes
    assert 0.0 < route.retry_ratio < 0.005
    after = tick(problem([row("d", 9.51)], alone, LINKS), before.snapshot)
    assert [each.retry_ratio for each in after.snapshot.routes] == [0.0]


def test_a_route_that_is_shed_whole_is_shed_whole_again_and_not_but_for_the_last_bits() -> None:
    curve = profile(knots=(0.0, 1.0), ttft_s=(0.34, 0.72), tbot_s=(0.025, 0.0305))
    rows = [row("d", 7.0, request_class="batch", tier=1, work=3.0), row("d", 300.0, work=0.25)]
    p = problem(rows, [engine("near", capacity=100.0, factor=0.3)], LINKS, (replace(curve, output_tokens=17.0),))
    first = tick(p)
    second = tick(p, first.snapshot)
    assert second.changed == frozenset()
    assert [route.shed_ratio for route in second.snapshot.routes] == [1.0, pytest.approx(0.6)]
