"""What was, while a tick stood: told only later, by the states after it. Of history, so the same for all variants.

    demand of [t, t + s) = mean of the panes in it, each by how much of it is inside       none told: as was planned for
    tokens at t          = between the two tellings around t                               none told: the run's mean

The plan was made for a smoothed demand, which lags a surge by seconds: the queue that grows meanwhile comes from what
really arrived. What ends before an instant that was asked for is forgotten.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.replay.core.told import Arrived, Lengths, Told
from headrace.replay.score.latency_mass import Floats
from headrace.schemas.ids import RouteKey


@dataclass(slots=True)
class _Panes:
    """A route's panes, RPS by begin; all of one length."""

    length_ms: int
    rps: dict[int, float] = field(default_factory=dict[int, float])


class LookingBack:
    """What ticks told so far. Asked for instants that never fall."""

    def __init__(self) -> None:
        self._routes: dict[RouteKey, _Panes] = {}
        self._lengths: dict[str, list[Lengths]] = {}

    def see(self, told: Told) -> None:
        """Take what a tick tells: a later word on a pane replaces the one before."""
        for arrived in told.arrived:
            self._take(arrived)
        for lengths in told.lengths:
            known = self._lengths.setdefault(lengths.model, [])
            if not known or lengths.at_ms > known[-1].at_ms:
                known.append(lengths)

    def demand(self, routes: Sequence[RouteKey], planned: Floats, from_ms: int, to_ms: int) -> Floats:
        """Give each route's demand over a stretch, RPS, (R,); where nothing is told of it, what was planned for."""
        told = [self._over(self._routes.get(route), from_ms, to_ms) for route in routes]
        for panes in self._routes.values():
            _forget(panes, from_ms)
        pairs = zip(told, planned.tolist(), strict=True)
        return np.array([plan if rps is None else rps for rps, plan in pairs], dtype=np.float64)

    def tokens(self, now_ms: int, otherwise: Mapping[str, float]) -> dict[str, float]:
        """Give the mean tokens of each model's answers at an instant; `otherwise` of those that nothing is told of."""
        found = dict(otherwise)
        for model, known in self._lengths.items():
            del known[: max(0, bisect_right(known, now_ms, key=lambda each: each.at_ms) - 1)]
            before, after = known[0], known[min(1, len(known) - 1)]
            part = (now_ms - before.at_ms) / max(after.at_ms - before.at_ms, 1)
            found[model] = before.tokens + min(max(part, 0.0), 1.0) * (after.tokens - before.tokens)
        return found

    def _take(self, arrived: Arrived) -> None:
        begin_ms, end_ms, _ = arrived.panes[0]
        kept = self._routes.get(arrived.route)
        if kept is None or kept.length_ms != end_ms - begin_ms:
            kept = self._routes[arrived.route] = _Panes(end_ms - begin_ms)
        kept.rps.update((begin, rps) for begin, _, rps in arrived.panes)

    def _over(self, panes: _Panes | None, from_ms: int, to_ms: int) -> float | None:
        if panes is None:
            return None
        length, seconds, total = panes.length_ms, 0, 0.0
        for begin_ms in range(from_ms // length * length, to_ms, length):
            rps = panes.rps.get(begin_ms)
            if rps is not None:
                inside = min(begin_ms + length, to_ms) - max(begin_ms, from_ms)
                seconds += inside
                total += inside * rps
        return total / seconds if seconds else None


def _forget(panes: _Panes, before_ms: int) -> None:
    while panes.rps and (oldest := next(iter(panes.rps))) + panes.length_ms <= before_ms:
        del panes.rps[oldest]
