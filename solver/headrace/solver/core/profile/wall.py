"""Where an engine's rate no longer rises: its capacity, and the stages beyond, which only queue.

    open loop     a stage that completed less than 97 % of what was offered is saturated: its queue grew
    closed loop   from concurrency N on everything is saturated where no later stage has a rate above
                  rate(N) x (N' / N)^0.1, so that doubling the concurrency adds less than 7 %
    wall          = median completed rate of the saturated stages, and not below the highest rate of the others (RPS)

The latency of a saturated stage says how long the test ran, or how many clients it had, and nothing of the engine.
Where no stage is saturated the wall was not reached: the capacity is the highest rate seen, which is a lower bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from headrace.solver.core.profile.load_test import LoadStage

SERVED_BELOW_THE_WALL = 0.97
"""A stage of a minute loses some 1 to 2 % of its completions to its end; one that queues loses more."""
STILL_RISES = 0.1
"""d log rate / d log concurrency below which the rate counts as level: 1 with an idle engine, 0 at a hard wall."""


@dataclass(frozen=True, slots=True)
class Wall:
    """The capacity in RPS, the stages on this side of it by rising rate, and those that only queued."""

    capacity_rps: float
    steady: tuple[LoadStage, ...]
    saturated: tuple[LoadStage, ...]

    @property
    def reached(self) -> bool:
        """Whether the capacity is the wall, and not only the highest rate seen."""
        return bool(self.saturated)


def find_wall(stages: Sequence[LoadStage]) -> Wall:
    """Find the wall of at least one stage, in any order; open and closed loops may be mixed."""
    level_from = _level_from([s for s in stages if s.concurrency is not None])
    saturated = tuple(s for s in stages if _is_saturated(s, level_from))
    steady = sorted((s for s in stages if not _is_saturated(s, level_from)), key=lambda s: (s.completed_rps, s.e2e_s))
    highest = max((s.completed_rps for s in steady), default=0.0)
    level = median(s.completed_rps for s in saturated) if saturated else 0.0
    return Wall(max(highest, level), tuple(steady), saturated)


def _is_saturated(stage: LoadStage, level_from: float | None) -> bool:
    if stage.offered_rps is not None:
        return stage.completed_rps < SERVED_BELOW_THE_WALL * stage.offered_rps
    return level_from is not None and stage.concurrency is not None and stage.concurrency > level_from


def _level_from(stages: Sequence[LoadStage]) -> float | None:
    """Give the lowest concurrency beyond which the rate no longer rises, or None where it rises to the end."""
    rates: dict[float, list[float]] = {}
    for stage in stages:
        if stage.concurrency is not None:
            rates.setdefault(stage.concurrency, []).append(stage.completed_rps)
    means = [(concurrency, median(rates[concurrency])) for concurrency in sorted(rates)]
    for i, (concurrency, rate) in enumerate(means[:-1]):
        if all(later < rate * (more / concurrency) ** STILL_RISES for more, later in means[i + 1 :]):
            return concurrency
    return None
