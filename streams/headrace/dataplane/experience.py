"""What a data plane has met at each engine, and whom it leaves out for it: detectors, ejections, throttles.

`learn()` may be called from any thread: what is known of an engine is replaced as a whole, so two samples at the same
instant may count as one, and nothing is ever half-way. Only the detectors' scores, the last ejection and the tally of
an engine are kept; engines that no route names any more are forgotten by `keep()`.
"""

from collections.abc import Collection
from typing import Final

from headrace.dataplane.guards.contract import AttemptOutcome, Detector, Sample
from headrace.dataplane.guards.ejection import Ejection, eject
from headrace.dataplane.guards.errors import ErrorCusum
from headrace.dataplane.guards.first_token import FirstTokenCusum
from headrace.dataplane.guards.throttle import Tally, counted, fraction, taken_back
from headrace.dataplane.settings import GuardSettings

NEVER_MS: Final = 1 << 62


class Experience:
    """Of one data plane; `seed` is its name, for the jitter of ejections."""

    def __init__(self, settings: GuardSettings, seed: str) -> None:
        self._settings = settings
        self._seed = seed
        self._detectors: tuple[Detector, ...] = (
            ErrorCusum(settings.error_tolerated, settings.error_bad, settings.error_once_in),
            FirstTokenCusum(settings.ttft_factor, settings.ttft_clip, settings.ttft_requests),
        )
        self._calm = (0.0,) * len(self._detectors)
        self._scores: dict[str, tuple[float, ...]] = {}
        self._ejections: dict[str, Ejection] = {}
        self._tallies: dict[str, Tally] = {}

    def send(self, engine_id: str, now_ms: int) -> None:
        """Note that an attempt is sent; `learn` is then to be told that it had begun."""
        self._count(engine_id, AttemptOutcome.OK, now_ms)

    def learn(self, engine_id: str, sample: Sample, now_ms: int, *, begun: bool = False) -> bool:
        """Fold one sample in; says whether somebody is now left out or throttled for it."""
        rejected = sample.outcome is AttemptOutcome.REJECTED
        if not begun:
            self._count(engine_id, sample.outcome, now_ms)
        elif rejected and (tally := self._tallies.get(engine_id)) is not None:
            self._tallies[engine_id] = taken_back(tally)
        rejects = rejected and (tally := self._tallies.get(engine_id)) is not None and self._fraction(tally, now_ms) > 0
        before = self._ejections.get(engine_id)
        if before is not None and before.lasts(now_ms):
            return rejects  # answers to what was sent before the ejection are no further evidence
        scores = self._scores.get(engine_id, self._calm)
        learnt = tuple(d.learn(score, sample) for d, score in zip(self._detectors, scores, strict=True))
        for detector, score in zip(self._detectors, learnt, strict=True):
            if score >= detector.threshold:
                self._scores[engine_id] = self._calm
                self._ejections.pop(engine_id, None)  # so that it goes to the end
                self._ejections[engine_id] = eject(
                    engine_id, detector.cause, before, now_ms, self._settings, self._seed
                )
                return True
        self._scores[engine_id] = learnt
        return rejects

    def keep_back(self, engines: Collection[str], now_ms: int) -> None:
        """Count a request that was sent to none of these engines, since all throttle: it would have been one more."""
        for engine_id in engines:
            self._count(engine_id, None, now_ms)

    def _count(self, engine_id: str, outcome: AttemptOutcome | None, now_ms: int) -> None:
        tally, window_ms = self._tallies.get(engine_id), self._settings.throttle_window_ms
        self._tallies[engine_id] = counted(tally, outcome, now_ms, window_ms)

    def ejections(self, now_ms: int) -> tuple[Ejection, ...]:
        """Give the ejections that last at this instant, in the order in which they began."""
        return tuple(e for e in list(self._ejections.values()) if e.lasts(now_ms))

    def turns(self, now_ms: int) -> tuple[int, ...]:
        """Give the later instants at which an ejection ends, or holds again for a clock that had stepped back."""
        every = [at_ms for e in list(self._ejections.values()) for at_ms in (e.from_ms, e.until_ms)]
        return tuple(at_ms for at_ms in every if at_ms > now_ms)

    def throttled(self, now_ms: int) -> dict[str, float]:
        """Give the engines that are asked less, each with the share of sessions that is kept from it."""
        # Most engines reject nothing, and fading changes no sign: only the others are looked at closer.
        k = self._settings.throttle_k
        rejecting = sorted(e for e, tally in list(self._tallies.items()) if tally.requests > k * tally.accepts)
        fractions = {engine: self._fraction(self._tallies[engine], now_ms) for engine in rejecting}
        return {engine: share for engine, share in fractions.items() if share > 0}

    def keep(self, engines: Collection[str]) -> None:
        """Forget all engines but these."""
        for known in (self._scores, self._ejections, self._tallies):
            for engine in [e for e in list(known) if e not in engines]:
                known.pop(engine, None)

    def _fraction(self, tally: Tally, now_ms: int) -> float:
        return fraction(tally, now_ms, self._settings.throttle_k, self._settings.throttle_window_ms)
