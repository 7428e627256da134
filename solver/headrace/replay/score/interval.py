"""Block bootstrap over time: how far a number would be off had the same process run another time.

    blocks of at least `block_s` are drawn with replacement, as many as there are; the number is computed of each draw;
    the interval holds the middle 95 % of what comes out

Blocks, not ticks, since neighbouring ticks share their window, their queue and their weights. Two variants are compared
by drawing the same blocks for both (they met the same traffic), so that what they share drops out. Seeded: the same
run gives the same interval. What history did not hold (an outage that never came) is in no interval.

Source: Kuensch 1989; non-overlapping blocks, Carlstein 1986.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.replay.score.bins import Bin
from headrace.replay.score.latency_mass import CELLS, Floats, quantiles_s
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of

MAX_BLOCKS = 256


@dataclass(frozen=True, slots=True)
class Interval:
    """The middle 95 %."""

    low: float
    high: float

    @property
    def leaves_out_zero(self) -> bool:
        """Whether a difference with this interval has a sign."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A run's blocks by the instant at which they begin: sums (B, len(Of)) and requests by latency (B, CELLS)."""

    starts_ms: tuple[int, ...]
    sums: Floats
    mass: Floats


Statistic = Callable[[Floats, Floats], Floats]
"""(sums of draws (N, len(Of)), masses (N, CELLS)) -> one number per draw, (N,)."""


def blocks_of(bins: Sequence[tuple[int, Bin]], block_ms: int, start_ms: int) -> Blocks:
    """Join bins into blocks of `block_ms`, counted from `start_ms`."""
    joined: dict[int, Bin] = {}
    for at_ms, each in bins:
        index = (at_ms - start_ms) // block_ms
        block = joined.setdefault(index, Bin())
        block.sums = block.sums + each.sums
        block.mass = block.mass + each.mass
    order = sorted(joined)
    return Blocks(
        starts_ms=tuple(start_ms + index * block_ms for index in order),
        sums=np.array([joined[i].sums for i in order]).reshape(len(order), len(Of)),
        mass=np.array([joined[i].mass for i in order]).reshape(len(order), CELLS),
    )


def block_ms(width_ms: int, span_ms: int, settings: ScoreSettings) -> int:
    """Give the length of a block: whole bins, at least `block_s`, at most 256 of them."""
    least = max(1000.0 * settings.block_s, span_ms / MAX_BLOCKS)
    return width_ms * max(1, -(-round(least) // width_ms))


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """What came out of each draw: sums (N, len(Of)) and masses (N, CELLS)."""

    sums: Floats
    mass: Floats


def draws_of(blocks: Blocks, settings: ScoreSettings) -> Draws | None:
    """Draw blocks with replacement; None where there are too few to draw from."""
    drawn = _drawn(len(blocks.starts_ms), settings)
    return None if drawn is None else Draws(drawn @ blocks.sums, drawn @ blocks.mass)


def paired_draws(a: Blocks, b: Blocks, settings: ScoreSettings) -> tuple[Draws, Draws] | None:
    """Draw the same blocks of both, of those that both have; None where these are too few."""
    common = sorted(set(a.starts_ms) & set(b.starts_ms))
    drawn = _drawn(len(common), settings)
    if drawn is None:
        return None
    kept = [[blocks.starts_ms.index(at) for at in common] for blocks in (a, b)]
    one, two = (
        Draws(drawn @ blocks.sums[places], drawn @ blocks.mass[places])
        for blocks, places in zip((a, b), kept, strict=True)
    )
    return one, two


def interval(draws: Draws | None, of: Statistic) -> Interval | None:
    """Give a number's interval; None without draws, or where a draw has no such number."""
    return None if draws is None else _middle(of(draws.sums, draws.mass))


def paired(draws: tuple[Draws, Draws] | None, of: Statistic) -> Interval | None:
    """Give the interval of the first one's number less the second one's."""
    if draws is None:
        return None
    one, two = draws
    return _middle(of(one.sums, one.mass) - of(two.sums, two.mass))


def _drawn(count: int, settings: ScoreSettings) -> Floats | None:
    """Give how often each block is drawn, (resamples, count)."""
    if count < settings.fewest_blocks:
        return None
    dice = np.random.default_rng(settings.seed)
    return dice.multinomial(count, np.full(count, 1.0 / count), size=settings.resamples).astype(np.float64)


def _middle(values: Floats) -> Interval | None:
    known = values[np.isfinite(values)]
    if known.size < values.size:
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return Interval(float(low), float(high))


# --- what is computed of a draw -------------------------------------------------------------------------------------


def mean_ms(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Mean end-to-end latency, ms; NaN where nothing was served."""
    return 1000.0 * _ratio(sums[:, Of.NETWORK] + sums[:, Of.ENGINE], sums[:, Of.SERVED])


def quantile_ms(q: float) -> Statistic:
    """Give the q-quantile of end-to-end latency, ms."""

    def of(sums: Floats, mass: Floats) -> Floats:
        return np.where(sums[:, Of.SERVED] > 0.0, 1000.0 * quantiles_s(mass, q), np.nan)

    return of


def unserved_percent(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Shed and refused, % of what was offered."""
    return 100.0 * _ratio(sums[:, Of.SHED] + sums[:, Of.REFUSED], sums[:, Of.OFFERED])


def shed_percent(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Shed by the weights, % of what was offered."""
    return 100.0 * _ratio(sums[:, Of.SHED], sums[:, Of.OFFERED])


def refused_percent(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Refused by engines for good, % of what was offered."""
    return 100.0 * _ratio(sums[:, Of.REFUSED], sums[:, Of.OFFERED])


def moved_percent(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Traffic moved, % of all per minute."""
    return 100.0 * _ratio(sums[:, Of.MOVED], sums[:, Of.SECONDS] / 60.0)


def cold_percent(sums: Floats, mass: Floats) -> Floats:  # noqa: ARG001 - a Statistic
    """Requests that lost their KV cache, % of those served."""
    return 100.0 * _ratio(sums[:, Of.COLD], sums[:, Of.SERVED])


def _ratio(top: Floats, bottom: Floats) -> Floats:
    quotient: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0.0)
    return quotient
