"""Engines that data planes leave out by themselves since their first tokens come late: what no weight says.

    score += requests x (clip(ln(TTFT / expected)) - ln factor), not below 0        by data plane (cluster) and engine
    ejected where the score reaches the threshold                                   when those requests have ended

A queue that weights did not foresee makes first tokens late; the engines with a small share of a route are then left
out, and the queue of the others grows. Detector, lengths, the share that may be out and the panic are the data plane's
own (`headrace.dataplane.guards`), at their defaults: history does not tell others. Errors, throttling and crowded
engines are left out here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.dataplane.guards.contract import Cause
from headrace.dataplane.guards.ejection import Ejection, eject
from headrace.dataplane.guards.first_token import FirstTokenCusum
from headrace.dataplane.settings import GuardSettings
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.placement import Placement
from headrace.schemas.weights import PPM
from headrace.solver.core.program.layout import sums

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """What requests of data planes at engines add to their scores, once they have ended: (N,), oldest first."""

    ended_ms: Floats
    cluster: Ints
    engine: Ints
    added: Floats

    def of(self, which: Bools) -> "_Evidence":
        """Give those."""
        return _Evidence(self.ended_ms[which], self.cluster[which], self.engine[which], self.added[which])

    def then(self, later: "_Evidence") -> "_Evidence":
        """Give these and, behind them, later ones."""
        return _Evidence(
            np.concatenate((self.ended_ms, later.ended_ms)),
            np.concatenate((self.cluster, later.cluster)),
            np.concatenate((self.engine, later.engine)),
            np.concatenate((self.added, later.added)),
        )


_NONE = _Evidence(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


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
        self._clusters: dict[str, int] = {}
        self._scores: Floats = np.zeros((0, 0))
        self._ejections: dict[_Key, Ejection] = {}
        self._at_ms: Ints = np.zeros((0, 0), dtype=np.int64)
        self._until_ms: Ints = np.zeros((0, 0), dtype=np.int64)
        self._under_way = _NONE

    def left_out(self, placement: Placement) -> Bools:
        """Say which pairs of route and engine are left out now, (P,)."""
        cluster = self._clusters_of(placement)
        suspected = (self._until_ms[cluster, placement.engine] > round(self._now_ms)) & (placement.share > 0.0)
        if not suspected.any():
            return suspected
        ppm = np.rint(PPM * placement.share).astype(np.int64)
        whole, out_of_it = (sums(placement.route, each, len(placement.routes)) for each in (ppm, ppm * suspected))
        all_may_go = out_of_it <= np.floor(self._settings.ejected_max * whole)
        panic = out_of_it > self._settings.panic_above * whole
        out = suspected & (ppm > 0) & (all_may_go & ~panic)[placement.route]
        rest = np.flatnonzero(suspected & ~all_may_go[placement.route])
        at_ms = self._at_ms[cluster[rest], placement.engine[rest]]
        out[rest] = left_out_of(placement.route[rest], at_ms, ppm[rest], whole, self._settings)
        return out

    def learn(self, placement: Placement, requests: Floats, met: Met, seconds: float) -> None:
        """Take what a tick's requests of each pair met, (P,) of them."""
        evidence = met.waits * self._evidence(met.unqueued_s + met.wait_s / np.maximum(met.waits, 1e-12), placement)
        evidence += (1.0 - met.waits) * self._evidence(met.unqueued_s, placement)
        cluster, engine = self._clusters_of(placement), placement.engine
        counts = (requests > 0.0) & np.isfinite(evidence)
        counts &= (evidence > 0.0) | (self._scores[cluster, engine] > 0.0)
        if counts.any():
            ended_ms = self._now_ms + 1000.0 * (seconds + met.whole_s[counts])
            added = requests[counts] * evidence[counts]
            self._under_way = self._under_way.then(_Evidence(ended_ms, cluster[counts], engine[counts], added))
        self._now_ms += 1000.0 * seconds
        self._judge()

    def _clusters_of(self, placement: Placement) -> Ints:
        """Give the number of the data plane of each pair, (P,), and room for the scores of all."""
        known = self._clusters
        of_route = [known.setdefault(route.cluster, len(known)) for route in placement.routes]
        engines = max(self._scores.shape[1], int(placement.engine.max(initial=-1)) + 1)
        if self._scores.shape != (len(known), engines):
            size = len(known), engines
            self._scores = _grown(self._scores, size)
            self._at_ms, self._until_ms = _grown(self._at_ms, size), _grown(self._until_ms, size)
        return np.array(of_route, dtype=np.int64)[placement.route]

    def _evidence(self, ttft_s: Floats, placement: Placement) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(ttft_s / placement.expected_s)
        found: Floats = np.clip(ratio, -self._bound, self._bound) - self._slack
        return found

    def _judge(self) -> None:
        """Count what has ended: of each data plane and engine one after the other, of all of them at once."""
        ended = self._under_way.ended_ms <= self._now_ms
        if not ended.any():
            return
        due, self._under_way = self._under_way.of(ended), self._under_way.of(~ended)
        now_ms = round(self._now_ms)
        names = list(self._clusters)
        turn = _occurrence(due.cluster * self._scores.shape[1] + due.engine)
        for each in range(int(turn.max()) + 1):
            now = due.of(turn == each)
            now = now.of(self._until_ms[now.cluster, now.engine] <= now_ms)
            score = np.maximum(self._scores[now.cluster, now.engine] + now.added, 0.0)
            alarmed = score >= self._threshold
            self._scores[now.cluster, now.engine] = np.where(alarmed, 0.0, score)
            for cluster, engine in zip(now.cluster[alarmed].tolist(), now.engine[alarmed].tolist(), strict=True):
                self._at_ms[cluster, engine] = now_ms
                self._until_ms[cluster, engine] = self._eject((names[int(cluster)], int(engine)), now_ms)

    def _eject(self, key: _Key, now_ms: int) -> int:
        cluster, engine = key
        before, seed = self._ejections.get(key), f"{cluster}|scored"
        found = eject(str(engine), Cause.SLOW_FIRST_TOKEN, before, now_ms, self._settings, seed)
        self._ejections[key] = found
        return found.until_ms


def left_out_of(route: Ints, at_ms: Ints, ppm: Ints, whole: Floats, settings: GuardSettings) -> Bools:
    """Say which suspects are left out of their routes: what `within_share` and `panics` say of each route's.

    Args:
        route: (N,) of each suspect, rising.
        at_ms: (N,) when its ejection began.
        ppm: (N,) its weight.
        whole: by route, the sum of all its weights.
        settings: how much may be out, and from where it is panic.
    """
    order = np.lexsort((at_ms, route))  # stable: of those that began at the same instant, the first counts first
    chosen, of, left = list[int](), -1, 0
    for place, each, weight in zip(order.tolist(), route[order].tolist(), ppm[order].tolist(), strict=True):
        if each != of:
            of, left = each, int(settings.ejected_max * whole[each])
        if 0 < weight <= left:
            left -= weight
            chosen.append(place)
    out = np.zeros(len(route), dtype=np.bool_)
    out[chosen] = True
    panic = sums(route, ppm * out, len(whole)) > settings.panic_above * whole
    return out & ~panic[route]


def _grown(values: npt.NDArray[Any], size: tuple[int, int]) -> npt.NDArray[Any]:
    """Give values with 0 where nothing was."""
    grown = np.zeros(size, dtype=values.dtype)
    grown[: values.shape[0], : values.shape[1]] = values
    return grown


def _occurrence(keys: Ints) -> Ints:
    """Give how often each key has come before, (N,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.searchsorted(ordered, ordered)
    before = np.empty(len(keys), dtype=np.int64)
    before[order] = np.arange(len(keys)) - begins
    return before
