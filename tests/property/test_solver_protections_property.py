"""What protections never do, whatever the fleet and whatever is remembered of it."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.state import OutcomePane
from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Exclusion, Measured, Outcomes, Problem
from headrace.solver.core.protections import protect, worth_remembering
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

SETTINGS = SolverSettings()
LP = Glop(threads=1)
ENDED = tuple(
    Outcomes(tuple(OutcomePane((n + 1) * 1000, 10 - f, f, n < 8) for n in range(10)), 1000) for f in (0, 1, 5, 10)
)
PENALTIES = ("outlier", "errors")
EMPTY = solve_tick(problem([row("A", 1.0)], [engine("e0")]), None, SETTINGS, LP, TickStamp(1, 1, 0)).snapshot


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Problem, Snapshot]:
    names = [f"e{i}" for i in range(draw(st.integers(1, 12)))]
    engines, memories = [], []
    for name in names:
        latency = draw(st.sampled_from([0.05, 0.1, 0.11, 0.3, 2.0]))
        rate = draw(st.sampled_from([0.0, 3.0, 8.0, 12.0]))
        measured = draw(st.sampled_from([None, Measured(rate, latency, latency, 100), Measured(rate, latency, 0.1, 5)]))
        out = draw(st.sampled_from([None, None, None, *(Exclusion(r, "") for r in (Reason.STALE, Reason.DRAINED))]))
        site, size = draw(st.sampled_from(["s1", "s2"])), draw(st.sampled_from([0.0, 5.0, 10.0, 25.0]))
        ended = draw(st.sampled_from([None, None, *ENDED]))
        engines.append(engine(name, site, size, measured=measured, exclusion=out, outcomes=ended))
        memories.append(
            EngineMemory(
                name,
                trim_ppm=draw(st.integers(PPM // 2, 2 * PPM)),
                trim_step=draw(st.integers(-14, 14)),
                penalty_ppm=draw(st.integers(PPM // 10, PPM)),
                away=draw(st.booleans()),
                returned_ms=draw(st.sampled_from([None, 0, 900, 50_000])),
                error_ppm=draw(st.sampled_from([None, 1, PPM // 2, PPM])),
                error_until_ms=draw(st.sampled_from([None, 5_000, 90_000])),
                penalty_for_errors=draw(st.booleans()),
            )
        )
    kept = tuple(m for m in memories if draw(st.booleans()))
    p = problem([row("A", draw(st.sampled_from([0.0, 5.0, 500.0])))], engines)
    return p, replace(EMPTY, commit=replace(EMPTY.commit, remembered=kept))


def pools(p: Problem) -> list[list[str]]:
    """Give the engines of each site that are not drained."""
    members = [e for e in p.engines if not e.exclusion or e.exclusion.reason is Reason.STALE]
    return [found for site in ("s1", "s2") if (found := [e.engine_id for e in members if e.site == site])]


@given(fleets(), st.integers(0, 60_000))
@settings(max_examples=200, deadline=None)
def test_at_most_thirty_percent_of_a_groups_capacity_or_one_engine_of_it_is_ever_penalised(
    fleet: tuple[Problem, Snapshot], now_ms: int
) -> None:
    p, before = fleet
    done = protect(p, before, replace(SETTINGS, cold_ramp_ms=0), now_ms)
    hit = {q.engine_id for q in done.protections if q.protection in PENALTIES and q.factor < 1.0}
    capacity = {e.engine_id: e.capacity_rps for e in p.engines}
    lone = [name for names in pools(p) if len(names) < 3 for name in names]
    everybody = sorted(capacity)
    for group, counted in [(names, names) for names in pools(p) if len(names) >= 3] + [(lone, everybody)]:
        taken = [name for name in group if name in hit]
        whole = sum(capacity[name] for name in counted)
        assert len(taken) <= 1 or sum(capacity[name] for name in taken) <= 0.3001 * whole


@given(fleets(), st.integers(0, 60_000))
@settings(max_examples=200, deadline=None)
def test_a_penalty_leaves_room_for_all_that_found_room_before(fleet: tuple[Problem, Snapshot], now_ms: int) -> None:
    p, before = fleet
    done = protect(p, before, replace(SETTINGS, cold_ramp_ms=0), now_ms)
    lost = {q.engine_id: 1.0 - q.factor for q in done.protections if q.protection in PENALTIES}
    left = sum(e.capacity_rps * (1.0 - lost.get(e.engine_id, 0.0)) for e in p.engines)
    (asked,) = (r.demand_work for r in p.rows)
    assert left >= min(asked / 0.95, sum(e.capacity_rps for e in p.engines)) * (1 - 1e-9)


@given(fleets(), st.integers(0, 60_000))
@settings(max_examples=200, deadline=None)
def test_in_a_panic_nobody_is_penalised(fleet: tuple[Problem, Snapshot], now_ms: int) -> None:
    p, before = fleet
    done = protect(p, before, SETTINGS, now_ms)
    hit = {q.engine_id for q in done.protections if q.protection in PENALTIES and q.factor < 1.0}
    there = {e.engine_id for e in p.engines if e.capacity_rps > 0.0}
    everybody = [name for names in pools(p) for name in names]
    for names in pools(p):
        counted = names if len(names) >= 3 else everybody
        if len(there.intersection(counted)) < 0.5 * len(counted):
            assert hit.isdisjoint(names)


@given(fleets(), st.integers(0, 60_000))
@settings(max_examples=200, deadline=None)
def test_protections_only_take_capacity_and_exclude_nobody_and_touch_nothing_else(
    fleet: tuple[Problem, Snapshot], now_ms: int
) -> None:
    p, before = fleet
    done = protect(p, before, SETTINGS, now_ms)
    for was, now in zip(p.engines, done.problem.engines, strict=True):
        assert 0.0225 * was.capacity_rps * (1 - 1e-9) <= now.capacity_rps <= was.capacity_rps
        same = {"factor": was.factor, "factor_sentence": was.factor_sentence, "profile_id": was.profile_id}
        assert replace(now, **same) == was
    assert done.problem.rows == p.rows
    assert all(q.sentence and q.factor > 0.0 for q in done.protections)
    assert all(PPM // 2 - 1 <= m.trim_ppm <= 2 * PPM + 1 for m in worth_remembering(done))


@given(fleets(), st.integers(0, 60_000), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_engines_and_memories_does_not_matter(
    fleet: tuple[Problem, Snapshot], now_ms: int, dice: object
) -> None:
    p, before = fleet
    engines, memories = list(p.engines), list(before.commit.remembered)
    dice.shuffle(engines)  # type: ignore[attr-defined]  # a Random, which the strategy does not say
    dice.shuffle(memories)  # type: ignore[attr-defined]  # likewise
    shuffled = replace(before, commit=replace(before.commit, remembered=tuple(memories)))
    one, other = (
        protect(p, before, SETTINGS, now_ms),
        protect(replace(p, engines=tuple(engines)), shuffled, SETTINGS, now_ms),
    )
    assert worth_remembering(one) == worth_remembering(other)
    assert one.protections == other.protections
    by_id = sorted(other.problem.engines, key=lambda e: e.engine_id)
    assert by_id == sorted(one.problem.engines, key=lambda e: e.engine_id)
    assert one.problem.profiles == other.problem.profiles


@given(fleets(), st.integers(0, 60_000))
@settings(max_examples=50, deadline=None)
def test_a_tick_under_protections_gives_the_same_bytes_again(fleet: tuple[Problem, Snapshot], now_ms: int) -> None:
    p, before = fleet
    one, other = (solve_tick(p, before, SETTINGS, LP, TickStamp(1, 2, now_ms)) for _ in range(2))
    assert one.snapshot == other.snapshot
