"""Where an engine's rate no longer rises: its capacity, and the stages beyond, which only queue.

    open loop     a stage that completed less than 97 % of what was offered is saturated: its queue grew; but not where
                  a later one completed clearly more, and no less than 85 % came: that is the end of a short test
    closed loop   from concurrency N on everything is saturated where no later stage has a rate above
                  rate(N) x (N' / N)^0.1, so that doubling the concurrency adds less than 7 %
    wall          = median completed rate of the saturated stages that are level (none later completed clearly more),
                    and not below the highest rate of the steady ones (RPS)

The latency of a saturated stage says how long the test ran, or how many clients it had, and nothing of the engine.
Where no stage is saturated the wall was not reached: the capacity is the highest rate seen, which is a lower bound.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from statistics import median

from headrace.solver.core.profile.load_test import LoadStage

SERVED_BELOW_THE_WALL = 0.97
"""A stage of a minute loses some 1 to 2 % of its completions to its end; one that queues loses more."""
SERVED_TO_A_SHORT_END = 0.85
"""N requests take N / rate and the last of them: 200 of 3 s each, offered at 8 RPS, are completed at 7.1 RPS, 89 %."""
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
    rising = _rising(stages)
    saturated = tuple(s for s in stages if _is_saturated(s, level_from, rising))
    steady = sorted(
        (s for s in stages if not _is_saturated(s, level_from, rising)), key=lambda s: (s.completed_rps, s.e2e_s)
    )
    highest = max((s.completed_rps for s in steady), default=0.0)
    level = [s.completed_rps for s in saturated if s not in rising]
    return Wall(max(highest, median(level) if level else 0.0), tuple(steady), saturated)


def _is_saturated(stage: LoadStage, level_from: float | None, rising: Set[LoadStage]) -> bool:
    if stage.offered_rps is not None:
        served = SERVED_TO_A_SHORT_END if stage in rising else SERVED_BELOW_THE_WALL
        return stage.completed_rps < served * stage.offered_rps
    return level_from is not None and stage.concurrency is not None and stage.concurrency > level_from


def _rising(stages: Sequence[LoadStage]) -> Set[LoadStage]:
    """Give the open stages that are not level: of those that were offered more, the best completed clearly more."""
    by_offer: dict[float, list[LoadStage]] = {}
    for stage in stages:
        if stage.offered_rps is not None:
            by_offer.setdefault(stage.offered_rps, []).append(stage)
    best_rps, best_offered = 0.0, 0.0
    rising = set[LoadStage]()
    for offered in sorted(by_offer, reverse=True):
        clearly = max((best_offered / offered) ** STILL_RISES, 1.0 / SERVED_BELOW_THE_WALL)
        rising.update(s for s in by_offer[offered] if best_rps > s.completed_rps * clearly)
        here = max(s.completed_rps for s in by_offer[offered])
        if here > best_rps:
            best_rps, best_offered = here, offered
    return rising


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
