"""Errors of one engine: the likelihood that it fails `bad` of its requests, against the `tolerated` share.

    score <- max(0, score + ln(bad / tolerated))               after an error or a timeout
    score <- max(0, score + ln((1 - bad) / (1 - tolerated)))   after a success
    alarm where score >= ln(once_in)

With 2 % tolerated, 25 % bad and one in a million: six errors in a row alarm (6 x 2.53 > 13.8), and an engine at the
tolerated rate is ejected wrongly less than once in a million requests. Failure mode: an engine between the two rates
is left alone for long; the solver's own penalties see it.

Source: Lorden, "Procedures for reacting to a change in distribution", 1971: the mean time to a false alarm of this sum
is at least e^threshold samples.
"""

import math
from typing import Final

from headrace.dataplane.guards.contract import AttemptOutcome, Cause, Sample

_FAILURES = (AttemptOutcome.ERROR, AttemptOutcome.TIMEOUT)


class ErrorCusum:
    """Detector of failing engines; shares in (0, 1), tolerated < bad."""

    def __init__(self, tolerated: float, bad: float, once_in: float) -> None:
        self.cause: Final = Cause.ERRORS
        self.threshold: Final = math.log(once_in)
        self._after_failure = math.log(bad / tolerated)
        self._after_success = math.log((1 - bad) / (1 - tolerated))

    def learn(self, score: float, sample: Sample) -> float:
        """Give the score after a sample; rejections and cancellations leave it as it is."""
        if sample.outcome is AttemptOutcome.OK:
            return max(0.0, score + self._after_success)
        return score + self._after_failure if sample.outcome in _FAILURES else score
