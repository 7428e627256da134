"""What the users of a simulated fleet met: each request once, in the stretch of time in which it was sent.

    served   answered; its latency is from sending to the last token, with network, queues and retries
    shed     refused before any engine was asked: by the weights, or since none was open
    failed   sent to engines, and answered by none

No profile is in it. Requests that are under way when the run ends are in none of the three.
"""

import math
from dataclasses import dataclass

from headrace.replay.score.bins import Bin, Bins
from headrace.replay.score.latency_mass import CELLS, LEAST_S, PER_OCTAVE, Floats
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of


@dataclass(frozen=True, slots=True, eq=False)
class UsersMet:
    """A run, summed up: of `Of` only OFFERED, SERVED, SHED, REFUSED (failed) and ENGINE (whole latencies) are told.

    Attributes:
        bin_ms: length of a bin.
        bins: (instant at which it begins, what was met in it), oldest first.
        sums: over the whole run.
        mass: requests by latency.
    """

    bin_ms: int
    bins: tuple[tuple[int, Bin], ...]
    sums: Floats
    mass: Floats


class UsersMetFold:
    """Takes endings in any order; memory does not grow with the run. Bins are counted from `from_ms`."""

    def __init__(self, from_ms: int, settings: ScoreSettings) -> None:
        self._bins = Bins(settings.bin_s, settings.max_bins)
        self._bins.start_ms = from_ms

    def answer(self, sent_ms: int, latency_s: float) -> None:
        """Count an answered request."""
        one = self._sent(sent_ms)
        one.sums[Of.SERVED] += 1.0
        one.sums[Of.ENGINE] += latency_s
        one.mass[min(CELLS - 1, int(PER_OCTAVE * math.log2(max(latency_s, LEAST_S) / LEAST_S)))] += 1.0

    def shed(self, sent_ms: int) -> None:
        """Count a request that no engine was asked for."""
        self._sent(sent_ms).sums[Of.SHED] += 1.0

    def fail(self, sent_ms: int) -> None:
        """Count a request that no engine answered."""
        self._sent(sent_ms).sums[Of.REFUSED] += 1.0

    def flow(self, at_ms: int, sums: Floats, mass: Floats) -> None:
        """Take a stretch of rates as a whole."""
        self._bins.at(at_ms).add(Bin(sums, mass))

    def finish(self) -> UsersMet:
        """Give what was met."""
        whole, bins = Bin(), tuple(self._bins.ordered())
        for _, each in bins:
            whole.add(each)
        return UsersMet(self._bins.width_ms, bins, whole.sums, whole.mass)

    def _sent(self, sent_ms: int) -> Bin:
        one = self._bins.at(sent_ms)
        one.sums[Of.OFFERED] += 1.0
        return one
