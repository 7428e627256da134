"""Engines that data planes leave out by themselves since their first tokens come late: what no weight says.

    score += requests x (clip(ln(TTFT / expected)) - ln factor), not below 0        by data plane (cluster) and engine
    ejected where the score reaches the threshold                                   when those requests have ended

A queue that weights did not foresee makes first tokens late; the engines with a small share of a route are then left
out, and the queue of the others grows. Detector, lengths, the share that may be out and the panic are the data plane's
own (`headrace.dataplane.guards`), at their defaults: history does not tell others. Errors, throttling and crowded
engines are left out here.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.dataplane.guards.contract import Cause
from headrace.dataplane.guards.ejection import Ejection, eject, within_share
from headrace.dataplane.guards.first_token import FirstTokenCusum
from headrace.dataplane.guards.panic import panics
from headrace.dataplane.settings import GuardSettings
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.placement import Placement
from headrace.schemas.weights import PPM

Bools = npt.NDArray[np.bool_]
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What some requests of a data plane at an engine add to its score, once they have ended."""

    ended_ms: float
    key: _Key
    added: float


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """What requests of each pair of route and engine met, (P,), network included.

    Attributes:
        unqueued_s: time to first token, the wait not included.
        wait_s: mean wait of all.
        waits: share of those that waited.
        whole_s: end to end.
    """

    unqueued_s: Floats
    wait_s: Floats
    waits: Floats
    whole_s: Floats


class Suspected:
    """What the data planes of one world have met. Its clock is the scored time, which has no gaps."""

    def __init__(self, settings: GuardSettings | None = None) -> None:
        self._settings = settings or GuardSettings()
        rules = self._settings
        self._slack, self._bound = math.log(rules.ttft_factor), math.log(rules.ttft_clip)
        self._threshold = FirstTokenCusum(rules.ttft_factor, rules.ttft_clip, rules.ttft_requests).threshold
        self._now_ms = 0.0
        self._scores: dict[_Key, float] = {}
        self._ejections: dict[_Key, Ejection] = {}
        self._under_way: deque[_Evidence] = deque()

    def left_out(self, placement: Placement) -> Bools:
        """Say which pairs of route and engine are left out now, (P,)."""
        out = np.zeros(len(placement.engine), dtype=np.bool_)
        lasting = {key: each for key, each in self._ejections.items() if each.lasts(round(self._now_ms))}
        if not lasting:
            return out
        engines, shares = placement.engine.tolist(), placement.share.tolist()
        pairs_of: dict[int, list[int]] = {}
        for pair, route in enumerate(placement.route.tolist()):
            pairs_of.setdefault(route, []).append(pair)
        for route, pairs in pairs_of.items():
            cluster = placement.routes[route].cluster
            suspects = [lasting[cluster, engines[p]] for p in pairs if (cluster, engines[p]) in lasting]
            if suspects:
                ppm = {str(engines[p]): round(PPM * shares[p]) for p in pairs}
                ejected = within_share(suspects, ppm, self._settings.ejected_max)
                if not panics(ppm, (), ejected, self._settings.panic_above):
                    out[[p for p in pairs if str(engines[p]) in ejected]] = True
        return out

    def learn(self, placement: Placement, requests: Floats, met: Met, seconds: float) -> None:
        """Take what a tick's requests of each pair met, (P,) of them."""
        evidence = met.waits * self._evidence(met.unqueued_s + met.wait_s / np.maximum(met.waits, 1e-12), placement)
        evidence += (1.0 - met.waits) * self._evidence(met.unqueued_s, placement)
        late = (requests > 0.0) & (evidence > 0.0)
        if late.any() or self._scores:
            for pair in np.flatnonzero((requests > 0.0) & np.isfinite(evidence)).tolist():
                key = placement.routes[int(placement.route[pair])].cluster, int(placement.engine[pair])
                if late[pair] or key in self._scores:
                    ended_ms = self._now_ms + 1000.0 * (seconds + float(met.whole_s[pair]))
                    self._under_way.append(_Evidence(ended_ms, key, float(requests[pair] * evidence[pair])))
        self._now_ms += 1000.0 * seconds
        self._judge()

    def _evidence(self, ttft_s: Floats, placement: Placement) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(ttft_s / placement.expected_s)
        found: Floats = np.clip(ratio, -self._bound, self._bound) - self._slack
        return found

    def _judge(self) -> None:
        waiting = deque[_Evidence]()
        for each in self._under_way:
            if each.ended_ms <= self._now_ms:
                self._count(each)
            else:
                waiting.append(each)
        self._under_way = waiting

    def _count(self, evidence: _Evidence) -> None:
        key, now_ms = evidence.key, round(self._now_ms)
        before = self._ejections.get(key)
        if before is not None and before.lasts(now_ms):
            return
        score = self._scores.pop(key, 0.0) + evidence.added
        if score >= self._threshold:
            cluster, engine = key
            seed = f"{cluster}|scored"
            self._ejections[key] = eject(str(engine), Cause.SLOW_FIRST_TOKEN, before, now_ms, self._settings, seed)
        elif score > 0.0:
            self._scores[key] = score
