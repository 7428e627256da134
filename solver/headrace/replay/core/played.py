"""One tick of a run over history: what was planned for, and what came of it.

The recorded run is told in the same form as a variant's, so that both are scored by the same code.
"""

from dataclasses import dataclass

from headrace.replay.core.told import NOTHING_TOLD, Told
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import Snapshot
from headrace.solver.core.problem import Problem
from headrace.solver.settings import SolverSettings


@dataclass(frozen=True, slots=True)
class PlayedTick:
    """What one tick saw and decided.

    Attributes:
        now_ms: the tick's time, ms since the epoch.
        problem: what was planned for: demand, engines, round trips and profiles as the tick saw them, before
            protections.
        snapshot: the weights of every route from this tick on, with shed and retry ratios, status and reasons.
        record: the tick's decision record; None where history holds none.
        told: what was new at it of the time before; nothing was planned by it.
        previous: the snapshot that it was decided upon; None where there was none, or it is that of the tick before.
        settings: what it was decided by; None where that is not known.
    """

    now_ms: int
    problem: Problem
    snapshot: Snapshot
    record: SolveRecord | None
    told: Told = NOTHING_TOLD
    previous: Snapshot | None = None
    settings: SolverSettings | None = None
