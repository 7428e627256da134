"""What scoring assumes where history does not tell, and how it is summed up. Every value is in the result."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """Assumptions and precision of a score.

    Attributes:
        queue_per_slot: waiting requests that an engine holds for each one in service at its wall; more are refused.
        chance: of the chance in arrivals and lengths, as a share of that of a Poisson process; 0 for none at all.
        turn_s: time between two turns of a conversation: how long a moved one is cold.
        cold_share: time to first token that a cold request pays once more, as a share of the idle engine's.
        profile_error: the score is repeated with every profile slower, and faster, by this share.
        bin_s: shortest time bin; bins double in length where there are more than `max_bins`.
        max_bins: bins that a run of any length is kept in.
        block_s: shortest block of the bootstrap, longer than what neighbouring ticks share (the window of the state).
        resamples: of the bootstrap.
        seed: of the bootstrap.
        fewest_blocks: fewer give no interval.
        fewest_effective: effective sample size below which an off-policy estimate is refused.
        reversal_ppm: a change of weight smaller than this has no direction.
        slow_above: measured over predicted above which an engine counts as slow, not its profile as off.
        hindsight_s: how much later an engine may turn out to have been dead.
        gap_periods: ticks further apart than this many periods leave a gap that is not scored.
    """

    queue_per_slot: Annotated[float, Ge(0), Le(1000)] = 2.0
    chance: Annotated[float, Ge(0), Le(100)] = 1.0
    turn_s: Annotated[float, Gt(0), Le(86_400)] = 30.0
    cold_share: Annotated[float, Ge(0), Le(100)] = 1.0
    profile_error: Annotated[float, Gt(0), Le(0.9)] = 0.2
    bin_s: Annotated[float, Gt(0), Le(3600)] = 1.0
    max_bins: Annotated[int, Ge(8), Le(10_000)] = 600
    block_s: Annotated[float, Gt(0), Le(86_400)] = 10.0
    resamples: Annotated[int, Ge(10), Le(100_000)] = 400
    seed: int = 1
    fewest_blocks: Annotated[int, Ge(2), Le(1000)] = 8
    fewest_effective: Annotated[float, Ge(1), Le(1e9)] = 100.0
    reversal_ppm: Annotated[int, Ge(0), Le(1_000_000)] = 10_000
    slow_above: Annotated[float, Gt(1), Le(100)] = 1.3
    hindsight_s: Annotated[float, Ge(0), Le(600)] = 60.0
    gap_periods: Annotated[float, Gt(1), Le(1e6)] = 20.0
