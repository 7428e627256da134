"""What is told of shedding adds up to what the tick sheds, also where records stand that are of an older demand."""

from collections.abc import Mapping

import pytest

from headrace.schemas.metric_table import Labels, NoCounts
from headrace.solver.core.problem import Problem
from headrace.solver.core.shed_of import shed_of
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.tick_line import tick_line
from headrace.solver.glop import Glop
from headrace.solver.metrics import count_tick
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row


class Shown(NoCounts):
    """Remembers what is shed by tier."""

    def __init__(self) -> None:
        self.shed: Mapping[Labels, float] = {}

    def show_all(self, name: str, values: Mapping[Labels, float]) -> None:
        if name == "shed_rps":
            self.shed = values


def short(times: float) -> Problem:
    """10 RPS of each class at 12 RPS of engines, all so many times: the batch sheds 8."""
    rows = [row("c", 10.0 * times, request_class="batch", tier=1), row("c", 10.0 * times)]
    return problem(rows, [engine("e", capacity=12.0 * times)])


@pytest.fixture(scope="module")
def ticks() -> tuple[Tick, Tick]:
    first = solve_tick(short(1.0), None, SolverSettings(), Glop(), TickStamp(1, 1, 500))
    again = solve_tick(short(1.04), first.snapshot, SolverSettings(), Glop(), TickStamp(1, 2, 1000))
    assert {route.version for route in again.snapshot.routes} == {1}
    return first, again


def test_a_route_whose_record_stands_sheds_of_what_this_tick_was_asked_for(ticks: tuple[Tick, Tick]) -> None:
    for tick, rps in zip(ticks, (8.0, 8.32), strict=True):
        assert {r.request_class: shed for r, shed in shed_of(tick)} == pytest.approx({"batch": rps, "default": 0.0})
        assert sum(shed for _, shed in shed_of(tick)) == pytest.approx(tick.record.shed_rps)


def test_the_line_of_a_tick_and_its_metrics_tell_the_same_of_each_class(ticks: tuple[Tick, Tick]) -> None:
    _, again = ticks
    assert "8.3 RPS shed (batch 8.3)" in tick_line(again, None, 0)
    counts = Shown()
    count_tick(counts, again, 0, 0)
    assert counts.shed == pytest.approx({("0",): 0.0, ("1",): 8.32})
