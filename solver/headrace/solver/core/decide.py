"""What a worker does at a tick: wait, hold, or solve; and nothing is given out that its own check refuses.

    no engine in the fleet, or nobody heard of, or no cluster; and no snapshot yet ──► Waiting, nothing to solve
    engines or round trips not heard of yet; and no snapshot yet                   ──► Waiting, at most first_wait_ms
    no round trip at all; and no snapshot yet                                      ──► Waiting, and loud after that
    frozen by an operator; telemetry lost, or profiles                             ──► HELD
    the solve raises, or check_snapshot() finds problems                           ──► HELD, and says which
    otherwise                                                                      ──► solve_tick()

Pure. A snapshot that this gives has passed the check that every reader runs again.
"""

from dataclasses import dataclass

from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.weights import Reason, Snapshot
from headrace.solver.core.inputs.assemble import lost_profiles, lost_telemetry
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp, hold_tick, solve_tick
from headrace.solver.settings import SolverSettings

MAX_PROBLEMS_TOLD = 5
NO_ROUND_TRIPS = "no round trips: publish NetworkProbe, see README"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing to publish, and why.

    Attributes:
        sentence: why.
        nothing_to_solve: whether the very first snapshot still lacks something it cannot be made without.
        fault: the exception where it is this program's own.
        overdue: whether somebody should look, since it will not come by itself.
    """

    sentence: str
    nothing_to_solve: bool = False
    fault: Exception | None = None
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """A tick whose snapshot is sound.

    `fault` is the exception that made it hold, where one did; `without` is what a first snapshot was made without.
    """

    tick: Tick
    fault: Exception | None = None
    without: str = ""


def decide(
    problem: Problem,
    previous: Snapshot | None,
    settings: SolverSettings,
    lp: LinearSolver,
    stamp: TickStamp,
    empty_ms: int,
) -> Decided | Waiting:
    """Give the tick to publish.

    Args:
        problem: as for `solve_tick`, and so are `previous`, `settings`, `lp` and `stamp`.
        previous: the last good snapshot; None until the very first.
        settings: the solver's.
        lp: solves the linear programs.
        stamp: epoch, version and time of this tick.
        empty_ms: the last time at which there was nothing to solve; the first snapshot's patience begins there.
    """
    lost, without = problem.frozen or lost_telemetry(problem) or lost_profiles(problem), ""
    if previous is None:
        missing = _missing(problem)
        if missing is not None:
            return Waiting(missing, nothing_to_solve=True)
        without = _unheard(problem)
        if without and stamp.now_ms - empty_ms < settings.first_wait_ms:
            return Waiting(f"{without} not heard of yet")
        if not problem.network_s:
            # All would be refused for it; a data plane that has no snapshot at all has its own fallback.
            return Waiting(NO_ROUND_TRIPS, overdue=True)
    elif lost is not None:
        return _held(problem, previous, settings, stamp, lost)
    fault: Exception | None = None
    try:
        tick = solve_tick(problem, previous, settings, lp, stamp)
        problems = check_snapshot(tick.snapshot, previous, tick.summands)
        if not problems:
            return Decided(tick, without=without)
    except Exception as error:  # noqa: BLE001 - a fault here must not take the weights from every data plane
        fault, problems = error, (f"{type(error).__name__}: {error}",)
    sentence = f"the solve was refused: {_told(problems)}"
    if previous is None:
        return Waiting(sentence, fault=fault)
    return _held(problem, previous, settings, stamp, sentence, fault)


def _missing(problem: Problem) -> str | None:
    """Say what a first snapshot cannot be made without; None where all is there."""
    if not problem.engines:
        return "there are no engines in the fleet yet"
    if lost_telemetry(problem) is not None:
        return f"none of {len(problem.engines)} engines has been heard of yet"
    if lost_profiles(problem) is not None:
        return f"none of {len(problem.engines)} engines has a known profile yet"
    if not problem.rows:
        return "no cluster is known yet: neither demand nor a network probe has come"
    return None


def _unheard(problem: Problem) -> str:
    """Name what a first snapshot would be lopsided without; empty where everything has been heard of."""
    engines = [e for e in problem.engines if e.exclusion is not None and e.exclusion.reason is Reason.NO_STATE]
    links = {(row.route.cluster, engine.site) for row in problem.rows for engine in problem.engines}
    unknown = links - problem.network_s.keys()
    parts = [f"{len(engines)} of {len(problem.engines)} engines"] if engines else []
    parts += [f"{len(unknown)} of {len(links)} round trips"] if unknown else []
    return " and ".join(parts)


def _held(
    problem: Problem,
    previous: Snapshot,
    settings: SolverSettings,
    stamp: TickStamp,
    sentence: str,
    fault: Exception | None = None,
) -> Decided | Waiting:
    tick = hold_tick(problem, previous, settings, stamp, sentence)
    problems = check_snapshot(tick.snapshot, previous, tick.summands)
    if problems:
        return Waiting(f"{sentence}; and the last snapshot cannot be held: {_told(problems)}", fault=fault)
    return Decided(tick, fault)


def _told(problems: tuple[str, ...]) -> str:
    more = len(problems) - MAX_PROBLEMS_TOLD
    return "; ".join(problems[:MAX_PROBLEMS_TOLD]) + (f"; and {more} more" if more > 0 else "")
