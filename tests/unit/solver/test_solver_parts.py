"""A layout's parts hang together and share nothing; stretches of them are solved beside each other to the same end."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array  # type: ignore[import-untyped]  # scipy ships no types
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # scipy ships no types

from headrace.schemas.snapshot_file import dump_snapshot
from headrace.solver.core.linear import LinearProgram, LinearSolver, Method
from headrace.solver.core.problem import Problem
from headrace.solver.core.program import parts
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.optimum import Optimum, optimum
from headrace.solver.core.program.parts import parts_of, stretches_of
from headrace.solver.core.program.program import costs_of
from headrace.solver.core.program.sparse import component_labels
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, problems, row

SETTINGS = SolverSettings(sift_above=0)
MODELS = 5


def apart() -> Problem:
    """Five models, each on three engines of its own at three sites, asked for from two clusters."""
    names = [f"m{i}" for i in range(MODELS)]
    engines = [engine(f"e{m}-{s}", f"s{s}", models=(m,), capacity=8.0 + s) for m in names for s in (1, 2, 3)]
    rows = [row(c, 9.0 + i, model=m) for i, m in enumerate(names) for c in ("a", "b")]
    return problem(rows, engines, {(c, f"s{s}"): 5.0 * s * (1 + (c == "b")) for c in ("a", "b") for s in (1, 2, 3)})


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40), st.integers(31, 40))
def test_components_are_those_of_scipy(edges: list[tuple[int, int]], size: int) -> None:
    start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (start, end)), shape=(size, size))
    assert component_labels(start, end, size).tolist() == connected_components(graph, directed=False)[1].tolist()


@settings(max_examples=100, deadline=None)
@given(problems())
def test_every_pair_that_may_carry_flow_is_in_one_part_and_parts_share_nothing(p: Problem) -> None:
    layout = lay_out(p, None)
    found = parts_of(layout)
    pairs = np.concatenate([np.zeros(0, np.int64), *(part.pairs for part in found)])
    assert sorted(pairs.tolist()) == np.flatnonzero(layout.demand[layout.pair_row] > 0.0).tolist()
    for of, name in ((layout.pair_row, "rows"), (layout.pair_pool, "pools")):
        members = [set(getattr(part, name).tolist()) for part in found]
        assert sum(map(len, members)) == len(set[int]().union(*members))
        assert members == [set(of[part.pairs].tolist()) for part in found]
    assert [part.pairs[0] for part in found] == sorted(part.pairs[0] for part in found)
    # No part falls into two: from its first row every row and pool of it is reached.
    for part in found:
        size = len(layout.rows)
        labels = component_labels(
            layout.pair_row[part.pairs], size + layout.pair_pool[part.pairs], size + len(layout.pools)
        )
        assert len({*labels[part.rows].tolist(), *labels[size + part.pools].tolist()}) == 1


def test_stretches_are_whole_parts_up_to_a_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PAIRS", 10)
    layout = lay_out(apart(), None)
    found = parts_of(layout)
    assert [len(part.pairs) for part in found] == [6] * MODELS
    assert [list(each) for each in stretches_of(found)] == [list(found[:2]), list(found[2:4]), list(found[4:])]
    assert list(stretches_of(())) == []


@pytest.mark.parametrize("pairs", [1, 10, 1_000])
def test_however_long_stretches_are_the_answer_is_the_optimum(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PAIRS", pairs)
    layout = lay_out(apart(), None)
    curves = curves_of(layout, SETTINGS)
    costs = costs_of(layout, curves, 30.0)
    sifted, whole = (optimum(layout, curves, costs, Glop(2), above) for above in (0, 1_000))
    assert isinstance(sifted, Optimum)
    assert isinstance(whole, Optimum)
    assert sifted.rung == "SIFTED"
    assert sifted.value == pytest.approx(whole.value, rel=1e-9)
    assert layout.per_row(sifted.flow) + sifted.shed == pytest.approx(layout.demand)


def test_stretches_beside_each_other_give_the_bytes_of_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PAIRS", 5)
    p = apart()
    again = replace(p, rows=tuple(replace(r, demand_rps=1.03 * r.demand_rps) for r in p.rows))
    before, bytes_of = None, dict[int, list[str]]()
    for threads in (1, 2, 4):
        before, bytes_of[threads] = None, []
        for version, asked in enumerate((p, again), 1):
            tick = solve_tick(asked, before, SETTINGS, Glop(threads), TickStamp(1, version, 1000 * version))
            assert tick.record.rung == "SIFTED"
            bytes_of[threads].append(str(dump_snapshot(tick.snapshot)))
            before = tick.snapshot
    assert bytes_of[1] == bytes_of[2] == bytes_of[4]


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_are_done_in_their_order_and_what_one_raises_is_raised(threads: int) -> None:
    def task(number: int) -> Callable[[LinearSolver], int]:
        def do(_: LinearSolver) -> int:
            if number == 5:
                raise ValueError(number)
            return number * number

        return do

    assert Glop(threads).each([task(i) for i in range(4)]) == [0, 1, 4, 9]
    with pytest.raises(ValueError, match="5"):
        Glop(threads).each([task(i) for i in range(7)])


def test_one_task_thinks_at_a_time_and_gives_its_turn_away_while_it_is_solved() -> None:
    thinking: list[int] = []
    many: list[int] = []
    solved: list[int] = []

    def task(number: int) -> Callable[[LinearSolver], int]:
        def do(lp: LinearSolver) -> int:
            for _ in range(20):
                thinking.append(number)
                many.append(len(thinking))
                thinking.remove(number)
                solved.append(len(lp.solve([one_row(float(number))] * 3, Method.DUAL)))
            return number

        return do

    assert Glop(3).each([task(i) for i in range(6)]) == list(range(6))
    assert set(many) == {1}
    assert solved == [3] * 120


def one_row(demand: float) -> LinearProgram:
    """Min x0 + 2 x1, x0 + x1 = demand, x0 <= 1."""
    matrix = (np.array([0, 2], np.int32), np.array([0, 1], np.int32), np.ones(2))
    upper = np.array([1.0, np.inf])
    return LinearProgram(np.array([1.0, 2.0]), np.zeros(2), upper, np.array([demand]), *matrix, np.array([1.5]))
