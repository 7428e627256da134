"""A surge: more requests of a route arrive than its weights know of, told by this data plane's own count.

    share  = arrived here up to the instant that the weights know / what they say was demanded      slowly averaged
    times  = arrived here in the last `surge_window_ms` / (share x demand x window),     1 where that may be chance

The solver plans for a cluster's demand as of `demand_until_ms`, as old as its signals are; a data plane sees each
request when it comes. It is one of some replicas, so what it counts is held against its own part of what was planned:
the part is learnt where both are known. Where it changes for good, since a replica came or went, two samples in a row
say so, and the average begins anew; until then the change looks like a surge, and is believed up to `surge_most`.

    chance: deviation of the count from what is expected, by Poisson's spread of the count and of what was learnt
            begins above `surge_sigmas`, ends below `ENDS`

No clock: it is judged when a half second ends with a request, and when a snapshot comes. One that knows of all that
came ends it: so it does not stand for hours where requests have ceased.
"""

import math
from typing import Final, NamedTuple

from headrace.dataplane.guards.arrivals import UNIT_MS, Arrivals
from headrace.dataplane.settings import GuardSettings

ENDS: Final = 1.0
"""Deviations below which a surge is over."""
SAMPLE: Final = 8
"""Half seconds of a sample of the share."""
SAMPLES: Final = 8
"""The share is the mean of so many."""
STEP: Final = 0.05
"""To so much a surge is rounded: nobody is moved for less."""


class Sample(NamedTuple):
    """What arrived here in a stretch of time, or in several, and what was demanded of the cluster in it."""

    arrived: int
    demanded: float


NOTHING: Final = Sample(0, 0.0)


class Surge:
    """Of one route. One thread plans, any number count: what was learnt is replaced and never changed.

    Attributes:
        times: how many times what the weights know of arrives; 1 where nothing says that it is more.
    """

    __slots__ = (
        "_arrivals",
        "_demand_rps",
        "_known_until",
        "_learnt",
        "_odd",
        "_sampled",
        "_samples",
        "_settings",
        "times",
    )

    def __init__(self, settings: GuardSettings) -> None:
        self.times = 1.0
        self._settings = settings
        self._arrivals = Arrivals()
        self._demand_rps = 0.0
        self._samples: tuple[Sample, ...] = ()
        self._learnt = NOTHING
        """The samples together."""
        self._sampled = self._known_until = -1
        self._odd: Sample | None = None
        """The newest sample, where it is off beyond chance and not taken in yet."""

    def arrive(self, now_ms: int) -> bool:
        """Count a request; says whether `times` has changed."""
        return self._arrivals.note(now_ms) and self._judge()

    def plan(self, demand_rps: float, until_ms: int | None) -> bool:
        """Go by weights that know of this demand, up to that instant; says whether `times` has changed."""
        self._demand_rps = demand_rps
        if until_ms is None:
            self._take(())
        else:
            self._known_until = until_ms // UNIT_MS
            self._learn(self._known_until)
        return self._judge()

    def _learn(self, end: int) -> None:
        """Take in what arrived before `end`, once for each stretch of time."""
        if 0 <= end - self._sampled < SAMPLE and self._sampled >= 0:
            return
        arrived = self._arrivals.count(end - SAMPLE, end)
        if arrived is None or self._demand_rps <= 0.0:
            return
        self._sampled = end
        sample = Sample(arrived, self._demand_rps * SAMPLE * UNIT_MS / 1000)
        sigmas = _sigmas(sample, self._learnt)
        if sigmas is None or abs(sigmas) <= self._settings.surge_sigmas:
            self._take((*self._samples, sample)[-SAMPLES:])
            return
        before = None if self._odd is None else _sigmas(self._odd, self._learnt)
        if self._odd is None or before is None or before * sigmas <= 0.0:
            self._odd = sample
            return
        # Twice in a row: this data plane's part of the cluster is another one now.
        self._take((self._odd, sample))

    def _take(self, samples: tuple[Sample, ...]) -> None:
        self._samples, self._odd = samples, None
        self._learnt = Sample(sum(each.arrived for each in samples), sum(each.demanded for each in samples))

    def _judge(self) -> bool:
        times = self._times()
        if times == self.times:
            return False
        self.times = times
        return True

    def _times(self) -> float:
        units = max(1, self._settings.surge_window_ms // UNIT_MS)
        learnt, end = self._learnt, self._arrivals.unit
        arrived = None if self._known_until > end else self._arrivals.count(end - units, end)
        if arrived is None:  # or nothing has come since the instant that the weights know
            return 1.0
        now = Sample(arrived, self._demand_rps * units * UNIT_MS / 1000)
        sigmas = _sigmas(now, learnt)
        if sigmas is None or sigmas <= (ENDS if self.times > 1.0 else self._settings.surge_sigmas):
            return 1.0
        times = min(arrived / _expected(now, learnt), self._settings.surge_most)
        return max(1.0, min(round(times / STEP) * STEP, self._settings.surge_most))


def _expected(sample: Sample, learnt: Sample) -> float:
    return learnt.arrived * sample.demanded / learnt.demanded if learnt.demanded > 0.0 else 0.0


def _sigmas(sample: Sample, learnt: Sample) -> float | None:
    """Give how many deviations a count is from what is expected; None where nothing is.

    In square roots, of which a Poisson count's deviation is 1/2 whatever its mean (Anscombe 1948): beside a mean of
    nearly nothing a single request is no surge.
    """
    expected = _expected(sample, learnt)
    if not 0.0 < expected < math.inf:
        return None
    off = math.sqrt(sample.arrived + 0.375) - math.sqrt(expected + 0.375)
    return 2.0 * off / math.sqrt(1.0 + expected / learnt.arrived)
