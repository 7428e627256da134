"""Large programs are sifted: the same optimum as the whole program's, proved, with few of its columns looked at."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.snapshot_file import dump_snapshot
from headrace.solver.core.linear import Failed, LinearProgram, Method, Solution
from headrace.solver.core.problem import Problem
from headrace.solver.core.program import price_guess
from headrace.solver.core.program.chord_columns import chord_columns
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.hub_flow import hand_out
from headrace.solver.core.program.hubs import OUT, hubs_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.price_guess import guess_prices, prices_before
from headrace.solver.core.program.program import costs_of
from headrace.solver.core.program.sifting import node_prices, sift, stays_of
from headrace.solver.core.program.smooth_dual import Slope, slope_at
from headrace.solver.core.program.verify import network_problem, reduced_costs
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import coupled_fleet, engine, highs_objective, problem, problems, row

WHOLE = SolverSettings(sift_above=1_000_000)
SIFTED = replace(WHOLE, sift_above=0)
LP = Glop(threads=1)


def tick_of(p: Problem, settings: SolverSettings, before: Tick | None = None, threads: int = 1) -> Tick:
    previous = None if before is None else before.snapshot
    return solve_tick(p, previous, settings, Glop(threads), TickStamp(1, 1 if before is None else 2, 1000))


@pytest.mark.parametrize("overload", [0.7, 0.95, 1.3])
def test_a_fleet_whose_models_share_engines_is_sifted_to_the_optimum_of_highs(overload: float) -> None:
    p = coupled_fleet(12, 60, 6, seed=3, utilisation=overload)
    layout = lay_out(p, None)
    curves = curves_of(layout, SIFTED)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    programs: list[LinearProgram] = []

    def solve(asked: object) -> tuple[Solution, ...]:
        programs.extend(asked)  # type: ignore[arg-type]
        return tuple(a for a in LP.solve(asked, Method.DUAL) if isinstance(a, Solution))  # type: ignore[arg-type]

    found = sift(hubs, guess_prices(hubs, prices_before(layout)), solve)
    assert not isinstance(found, Failed)
    whole = hubs.arcs.program()
    assert whole.cost @ found.values == pytest.approx(highs_objective(whole), rel=1e-9)
    assert max(program.size[1] for program in programs) < whole.size[1]
    # Each begins at prices from which nothing without a bound is to be had too cheaply: the dual simplex is under way.
    for program in programs:
        assert program.near is not None
        left = reduced_costs(program, program.near)[np.isinf(program.upper)]
        assert left.min() >= -1e-9 * program.cost.max()


@pytest.mark.parametrize("later", [0.4, 0.75, 1.3])
def test_demand_that_jumps_is_sifted_to_the_optimum_of_highs_in_few_small_programs(later: float) -> None:
    first = tick_of(coupled_fleet(40, 200, 12, seed=3, sites=5, scattered=True), WHOLE)
    layout = lay_out(coupled_fleet(40, 200, 12, seed=3, sites=5, scattered=True, utilisation=later), first.snapshot)
    curves = curves_of(layout, SIFTED)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    sizes: list[int] = []

    def solve(asked: Sequence[LinearProgram]) -> tuple[Solution, ...]:
        sizes.append(sum(program.size[1] for program in asked))
        return tuple(a for a in LP.solve(asked, Method.DUAL) if isinstance(a, Solution))

    found = sift(hubs, guess_prices(hubs, prices_before(layout)), solve)
    assert not isinstance(found, Failed)
    whole = hubs.arcs.program()
    assert whole.cost @ found.values == pytest.approx(highs_objective(whole), rel=1e-9)
    assert network_problem(hubs.arcs, found.values, found.prices) is None
    # Of a row that was shed only the cheapest ways are opened, not all that look cheap beside shedding.
    assert max(sizes) < 0.5 * whole.size[1]
    assert found.rounds <= 10


def test_a_sifted_tick_says_so_and_is_as_good_as_the_whole_one() -> None:
    first = coupled_fleet(10, 50, 5, seed=4)
    later = coupled_fleet(10, 50, 5, seed=4, utilisation=0.75)
    for p, before in ((first, None), (later, tick_of(first, WHOLE))):
        whole, sifted = tick_of(p, WHOLE, before).record, tick_of(p, SIFTED, before).record
        assert (whole.rung, sifted.rung) == ("DUAL", "SIFTED")
        assert whole.objective is not None
        assert sifted.objective == pytest.approx(whole.objective, rel=1e-4)
        assert sifted.components == whole.components
        assert sifted.gap is not None
        assert sifted.gap < 0.01
        assert check_snapshot(tick_of(p, SIFTED, before).snapshot) == ()


def test_a_sifted_answer_does_not_depend_on_threads() -> None:
    p = coupled_fleet(10, 60, 6, seed=5)
    one, four = (tick_of(p, SIFTED, threads=n) for n in (1, 4))
    assert dump_snapshot(one.snapshot) == dump_snapshot(four.snapshot)
    assert one.record == four.record


def test_the_same_again_moves_nothing() -> None:
    p = coupled_fleet(10, 50, 5, seed=6)
    settings = replace(SIFTED, stay_within=0.0)
    first = tick_of(p, settings)
    assert tick_of(p, settings, first).record.moved_rps == pytest.approx(0.0, abs=1e-3)


def test_what_cannot_be_sifted_is_solved_as_a_whole() -> None:
    class Sifter(Glop):
        """Fails at everything that does not hold all of the program's columns."""

        def solve(self, programs: Sequence[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:
            return tuple(
                Failed("GLOP_ABNORMAL") if np.isinf(p.upper).sum() > 3 else LP.solve([p], method)[0] for p in programs
            )

    engines = [engine("e1"), engine("e2", "s2"), engine("e3", "s3")]
    p = problem([row("a", 12)], engines, 5.0)
    tick = solve_tick(p, None, SIFTED, Sifter(threads=1), TickStamp(1, 1, 0))
    assert tick.record.rung == "DUAL"
    assert tick.record.shed_rps == 0.0


def test_a_hub_stands_for_the_pools_of_one_site_that_a_row_may_use() -> None:
    engines = [engine("e1"), engine("e2", capabilities=("vision",)), engine("e3", "s2"), engine("e4", models=("n",))]
    p = problem([row("a", 5), row("b", 5), row("b", 3, request_class="image", requires=("vision",))], engines, 5.0)
    layout = lay_out(p, None)
    curves = curves_of(layout, WHOLE)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    # s1 and s2 for all that ask for nothing, s1 for those who ask for vision: 3 hubs, and 2 + 2 + 1 ways.
    hub_count, pool_count, ways, keeps, links, _ = hubs.sizes
    assert (hub_count, pool_count, ways, keeps, links) == (3, 4, 5, 0, 4)
    assert hubs.arcs.supply.sum() == 13.0
    assert (hubs.arcs.head[hubs.bounds[3] :] == OUT).all()
    assert len(layout.pair_row) == 7
    assert hubs.way_start.tolist() == [0, 2, 4, 5]


def test_what_a_hub_takes_in_is_handed_out_in_order() -> None:
    # Hub 0: 5 and 3 into 6 and 2. Hub 1: 4 into 4. A source and a sink without flow are left out.
    source, sink, amount = hand_out(
        np.array([0, 1, 0, 0]), np.array([5.0, 4.0, 0.0, 3.0]), np.array([0, 0, 0, 1]), np.array([6.0, 0.0, 2.0, 4.0])
    )
    assert list(zip(source.tolist(), sink.tolist(), amount.tolist(), strict=True)) == [
        (0, 0, pytest.approx(5)),
        (3, 0, pytest.approx(1)),
        (3, 2, pytest.approx(2)),
        (1, 3, pytest.approx(4)),
    ]
    nothing = hand_out(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0))
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_prices_begin_where_the_last_tick_left_them() -> None:
    p = coupled_fleet(6, 30, 3, seed=7)
    first = tick_of(p, WHOLE)
    assert first.decision is not None
    assert first.decision.plan.prices is not None
    before = prices_before(lay_out(p, first.snapshot))
    known = np.isfinite(before)
    assert known.sum() > 10
    assert before[known] == pytest.approx(first.decision.plan.prices.pool[known])
    assert np.isnan(prices_before(lay_out(p, None))).all()


def test_guessed_prices_are_near_those_of_the_optimum() -> None:
    p = coupled_fleet(20, 100, 5, seed=8)
    layout = lay_out(p, None)
    curves = curves_of(layout, WHOLE)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    guess = guess_prices(hubs, prices_before(layout))
    decision = tick_of(p, WHOLE).decision
    assert decision is not None
    assert decision.plan.prices is not None
    used = layout.per_pool(decision.plan.flow) > 0.0
    off = np.abs(guess - decision.plan.prices.pool)[used]
    assert float(np.median(off / decision.plan.prices.pool[used])) < 0.1


def test_prices_that_are_known_take_few_steps_but_where_much_hangs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = lay_out(coupled_fleet(20, 100, 5, seed=8), None)
    curves = curves_of(layout, WHOLE)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 0.0))
    known, steps = guess_prices(hubs, np.full(len(layout.pools), np.nan)), list[float]()

    def counted(*args: object, **kinds: object) -> Slope:
        steps.append(1.0)
        return slope_at(*args, **kinds)  # type: ignore[arg-type]

    def steps_of(short: int) -> int:
        steps.clear()
        monkeypatch.setattr(price_guess, "SHORT", short)
        guess_prices(hubs, known)
        return len(steps)

    monkeypatch.setattr(price_guess, "slope_at", counted)
    monkeypatch.setattr(price_guess, "KNOWN", 1.0)
    assert steps_of(price_guess.SHORT) < steps_of(0)


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_a_row_costs_what_its_last_request_does_where_what_was_there_before_goes_first(p: Problem, seed: int) -> None:
    layout = lay_out(p, tick_of(p, SolverSettings(move_price_ms=5.0)).snapshot)
    curves = curves_of(layout, WHOLE)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 5.0))
    arcs, (ways, keeps, links, _, sheds, shed_keeps, end) = hubs.arcs, hubs.bounds
    pool = np.random.default_rng(seed).uniform(0.0, 300.0, len(hubs.pools))
    prices = node_prices(hubs, stays_of(hubs), pool)
    cost = arcs.cost + np.append(prices, 0.0)[arcs.head]
    for node in range(len(hubs.rows)):
        own = np.flatnonzero(arcs.tail == node)
        best = min(cost[i] for i in own if ways <= i < keeps or sheds <= i < shed_keeps)
        left = arcs.supply[node]
        for i in sorted((i for i in own if keeps <= i < links or shed_keeps <= i < end), key=lambda i: cost[i]):
            left -= arcs.upper[i]
            if left <= 0.0:
                best = min(best, cost[i])
                break
        assert prices[node] == pytest.approx(best)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_the_chords_of_groups_are_those_of_their_profiles_over_their_capacities(p: Problem) -> None:
    layout = lay_out(p, None)
    curves = curves_of(layout, WHOLE)
    groups = np.arange(len(layout.group_profile))[::2]
    columns = chord_columns(layout, curves, groups)
    chords = [curves.chords[layout.group_profile[h]] for h in groups.tolist()]
    assert columns.count.tolist() == [len(c.slopes) for c in chords]
    assert columns.slope.tolist() == [slope for c in chords for slope in c.slopes.tolist()]
    widths = [c.widths * layout.group_capacity[h] for h, c in zip(groups.tolist(), chords, strict=True)]
    assert columns.width.tolist() == [width for of_group in widths for width in of_group.tolist()]
