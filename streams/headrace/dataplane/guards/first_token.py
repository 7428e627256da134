"""Time to first token of one engine against what the snapshot expects of it at its load, network included.

    score <- max(0, score + clip(ln(ttft / expected), -ln clip, ln clip) - ln factor)
    alarm where score >= requests x (ln clip - ln factor)

Ratios count by their logarithm and are clipped, so that one long prompt is one piece of evidence and not a hundred. An
engine at `clip` times the expected or worse alarms after `requests` requests in a row; one below `factor` in the mean
never does. Not measured, not expected or not a positive number: no evidence. Failure mode: profiles that promise too
much make every engine look slow; the cap on ejected weight and the panic threshold are for that.
"""

import math
from typing import Final

from headrace.dataplane.guards.contract import Cause, Sample


class FirstTokenCusum:
    """Detector of slow engines; 1 < factor < clip."""

    def __init__(self, factor: float, clip: float, requests: int) -> None:
        self._slack = math.log(factor)
        self._bound = math.log(clip)
        # A sum of equal terms is rounded: a hair less, so that the last of them alarms and not the one after.
        self.cause: Final = Cause.SLOW_FIRST_TOKEN
        self.threshold: Final = requests * (self._bound - self._slack) * (1 - 1e-9)

    def learn(self, score: float, sample: Sample) -> float:
        """Give the score after a sample."""
        ttft, expected = sample.ttft_s, sample.expected_ttft_s
        if ttft is None or expected is None or not (0 < ttft < math.inf and 0 < expected < math.inf):
            return score
        ratio = min(max(math.log(ttft / expected), -self._bound), self._bound)
        return max(0.0, score + ratio - self._slack)
