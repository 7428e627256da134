"""A surge: more requests of a route arrive than its weights know of, told by this data plane's own count.

    share  = arrived here up to the instant that the weights know / what they say was demanded      slowly averaged
    times  = arrived here in the last `surge_window_ms` / (share x demand x window),     1 where that may be chance

The solver plans for a cluster's demand as of `demand_until_ms`, as old as its signals are; a data plane sees each
request when it comes. It is one of some replicas, so what it counts is held against its own part of what was planned:
the part is learnt where both are known. Where it changes for good, since a replica came or went, two samples in a row
say so, and the average begins anew; until then the change looks like a surge, and is believed up to `surge_most`.

    chance: deviation of the count from what is expected, by Poisson's variance of the count and of what was learnt
            begins above `surge_sigmas`, ends below `ENDS`

No clock: it is judged when a half second ends with a request, and when a snapshot comes.
"""

import math
from collections import deque
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
    """What arrived here in a stretch of time, and what was demanded of the cluster in it."""

    arrived: int
    demanded: float


class Surge:
    """Of one route.

    Attributes:
        times: how many times what the weights know of arrives; 1 where nothing says that it is more.
    """

    __slots__ = ("_arrivals", "_demand_rps", "_odd", "_sampled", "_samples", "_settings", "times")

    def __init__(self, settings: GuardSettings) -> None:
        self.times = 1.0
        self._settings = settings
        self._arrivals = Arrivals()
        self._demand_rps = 0.0
        self._samples = deque[Sample](maxlen=SAMPLES)
        self._sampled = -1
        self._odd: Sample | None = None
        """The newest sample, where it is off beyond chance and not taken in yet."""

    def arrive(self, now_ms: int) -> bool:
        """Count a request; says whether `times` has changed."""
        return self._arrivals.note(now_ms) and self._judge()

    def plan(self, demand_rps: float, until_ms: int | None) -> bool:
        """Go by weights that know of this demand, up to that instant; says whether `times` has changed."""
        self._demand_rps = demand_rps
        if until_ms is None:
            self._samples.clear()
        else:
            self._learn(until_ms // UNIT_MS)
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
        sigmas = self._sigmas(sample)
        if sigmas is None or abs(sigmas) <= self._settings.surge_sigmas:
            self._samples.append(sample)
            self._odd = None
            return
        before = None if self._odd is None else self._sigmas(self._odd)
        if self._odd is None or before is None or before * sigmas <= 0.0:
            self._odd = sample
            return
        # Twice in a row: this data plane's part of the cluster is another one now.
        self._samples.clear()
        self._samples.extend((self._odd, sample))
        self._odd = None

    def _judge(self) -> bool:
        times = self._times()
        if times == self.times:
            return False
        self.times = times
        return True

    def _times(self) -> float:
        units = max(1, self._settings.surge_window_ms // UNIT_MS)
        end = self._arrivals.unit
        arrived = self._arrivals.count(end - units, end)
        if arrived is None:
            return 1.0
        now = Sample(arrived, self._demand_rps * units * UNIT_MS / 1000)
        sigmas = self._sigmas(now)
        if sigmas is None or sigmas <= (ENDS if self.times > 1.0 else self._settings.surge_sigmas):
            return 1.0
        times = arrived / self._expected(now)
        return max(1.0, min(round(times / STEP) * STEP, self._settings.surge_most))

    def _expected(self, sample: Sample) -> float:
        demanded = sum(known.demanded for known in self._samples)
        return sum(known.arrived for known in self._samples) / demanded * sample.demanded if demanded > 0.0 else 0.0

    def _sigmas(self, sample: Sample) -> float | None:
        """Give how many deviations a count is from what is expected; None where nothing is."""
        expected = self._expected(sample)
        if expected <= 0.0:
            return None
        rests_on = sum(known.arrived for known in self._samples)
        return (sample.arrived - expected) / math.sqrt(expected + expected * expected / rests_on)
