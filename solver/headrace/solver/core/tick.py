"""A tick: (problem, previous snapshot, settings, linear solver, stamp) -> the next snapshot and its record. Pure.

Whatever happens there is a snapshot: where the linear solver fails on every rung, the last good weights restricted to
the engines that are still there (HELD), and where there are none, capacity-proportional ones (PROPORTIONAL).
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import Snapshot
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Problem
from headrace.solver.settings import SolverSettings


def standing_still() -> int:
    """Give 0: the stop watch of a run whose timings do not matter, such as a replay."""
    return 0


@dataclass(frozen=True, slots=True)
class TickStamp:
    """Which tick this is, and when.

    Attributes:
        epoch: writer generation.
        version: version of the snapshot to make; above the previous one's.
        now_ms: tick time; the snapshot is valid from here for `ttl_ms`.
        elapsed_us: stop watch that the record's phase timings are read from; nothing else depends on it.
    """

    epoch: int
    version: int
    now_ms: int
    elapsed_us: Callable[[], int] = standing_still


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick made.

    Attributes:
        snapshot: every route, checked by the caller with `check_snapshot` before it is published.
        changed: keys of the routes that differ from the previous snapshot; all of them in an epoch's first tick.
        removed: keys of the previous snapshot's routes that no longer exist: to be written as tombstones.
        record: the decision record; `publish_us` is 0, for the caller to fill in.
    """

    snapshot: Snapshot
    changed: frozenset[bytes]
    removed: frozenset[bytes]
    record: SolveRecord


def solve_tick(
    problem: Problem, previous: Snapshot | None, settings: SolverSettings, lp: LinearSolver, stamp: TickStamp
) -> Tick:
    """Make the next snapshot.

    Args:
        problem: rows, engines, round trips and profiles, already valid; empty sequences are allowed.
        previous: the last good snapshot, or None at the first start. A new epoch passes the old epoch's snapshot, so
            that sessions stay on their warm engines; every route is then written again.
        settings: the solver's.
        lp: solves the linear programs.
        stamp: epoch, version and time of this tick.
    """
    raise NotImplementedError


def hold_tick(problem: Problem, previous: Snapshot, settings: SolverSettings, stamp: TickStamp, sentence: str) -> Tick:
    """Make a snapshot whose routes are the previous ones untouched, valid for another `ttl_ms`, status HELD.

    For the case that nothing is known any more (all telemetry lost): not knowing is no reason to move traffic.
    """
    raise NotImplementedError
