"""A run cut into equal bins of time, never more than `max_bins`: where there would be more, neighbours are merged.

    bin q holds the instants [start + q width, start + (q + 1) width)        width doubles with each merge

So a run of any length is kept in bounded memory, and its shape over time at about a six-hundredth of its length.
A tick's span belongs to the bin in which it begins.
"""

from dataclasses import dataclass, field

import numpy as np

from headrace.replay.score.latency_mass import Floats, no_mass
from headrace.replay.score.sums import no_sums

Pair = tuple[str, str]


def _no_load() -> Floats:
    return np.zeros(0)


def _nobody() -> Floats:
    return np.zeros((2, 0))


@dataclass(slots=True)
class Bin:
    """One stretch.

    Attributes:
        sums: of everything.
        mass: requests by end-to-end latency.
        load: seconds x load by engine.
        shares: seconds x share of watched pairs.
        engine_mass: requests by their time in the engine, without the network.
        engine_sums: (2, E): requests; seconds in the engine x requests.
    """

    sums: Floats = field(default_factory=no_sums)
    mass: Floats = field(default_factory=no_mass)
    load: Floats = field(default_factory=_no_load)
    shares: dict[Pair, float] = field(default_factory=dict[Pair, float])
    engine_mass: Floats = field(default_factory=no_mass)
    engine_sums: Floats = field(default_factory=_nobody)

    def add(self, other: "Bin") -> None:
        """Take another stretch in."""
        self.sums = self.sums + other.sums
        self.mass = self.mass + other.mass
        self.load = added(self.load, other.load)
        self.engine_mass = self.engine_mass + other.engine_mass
        pairs = zip(self.engine_sums, other.engine_sums, strict=True)
        self.engine_sums = np.array([added(mine, others) for mine, others in pairs])
        for pair, share in other.shares.items():
            self.shares[pair] = self.shares.get(pair, 0.0) + share


class Bins:
    """Bins by number, made as they are asked for; times must not fall."""

    def __init__(self, width_s: float, max_bins: int) -> None:
        self.width_ms = max(1, round(1000 * width_s))
        self.start_ms: int | None = None
        self._max = max_bins
        self._bins: dict[int, Bin] = {}

    def at(self, now_ms: int) -> Bin:
        """Give the bin that an instant is in."""
        if self.start_ms is None:
            self.start_ms = now_ms
        while (now_ms - self.start_ms) // self.width_ms >= self._max:
            self._halve()
        return self._bins.setdefault((now_ms - self.start_ms) // self.width_ms, Bin())

    def ordered(self) -> list[tuple[int, Bin]]:
        """Give (instant at which it begins, bin), oldest first; a stretch without a tick has none."""
        start = self.start_ms or 0
        return [(start + index * self.width_ms, each) for index, each in sorted(self._bins.items())]

    def _halve(self) -> None:
        merged: dict[int, Bin] = {}
        for index, each in sorted(self._bins.items()):
            merged.setdefault(index // 2, Bin()).add(each)
        self._bins = merged
        self.width_ms *= 2


def added(a: Floats, b: Floats) -> Floats:
    """Add arrays of which one may be shorter: the longer one's places beyond are its own."""
    if len(a) < len(b):
        a, b = b, a
    out = a.copy()
    out[: len(b)] += b
    return out
