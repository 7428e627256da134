"""The engine of a session whose own is out: a race for its slot by the weights that the failover makes.

    weight_j = own weight + what the engines that are out weighed x failover share / shares of those that are not
    engine   = argmin over j of  claim time of the session's slot / weight_j          (as in `slot_table`)

The solver says in each route where sessions shall go if an engine is lost before it has heard of it: to where there is
room. The next snapshot will give about these weights, and its slot table is the same race: so the session stays there.
Only the lost engines' slots are raced for: until that snapshot the failover's engines get less than their shares of
them, and survivors without a share get some. Where a session goes is given up for its staying there.

Engines that are left out, of the failover too, take no part; where none of it may be taken there is no answer.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.dataplane.decision import Decision
from headrace.dataplane.slot_table import Ints, claim_times, order_of

Floats = npt.NDArray[np.float64]

_LOOKS: Final = 32_768
"""Slots times engines that `parts` looks at, about."""
_LEAST: Final = 32
"""Slots that it looks at, if there are so many."""


class Failover:
    """Of one route; never changes.

    Args:
        decisions: one for each engine that may be picked.
        ppm: their own weights; engines without one have only what the failover brings them.
        shares: of the failover, by engine.
        size: of the slot table.
    """

    __slots__ = ("_decisions", "_orders", "_own", "_share", "_size", "engines", "shares")

    def __init__(
        self, decisions: Sequence[Decision], ppm: Mapping[str, int], shares: Mapping[str, int], size: int
    ) -> None:
        self._decisions = tuple(decisions)
        self.engines = tuple(str(d.engine_id) for d in self._decisions)
        self.shares = shares
        self._own = np.array([ppm.get(e, 0) for e in self.engines], np.int64)
        self._share = np.array([shares.get(e, 0) for e in self.engines], np.int64)
        self._orders = np.array([order_of(e, size) for e in self.engines], np.int64).reshape(-1, 2)
        self._size = size

    def pick(self, point: int, barred: Collection[str], out_ppm: int) -> Decision | None:
        """Give the engine of the session at `point`; `out_ppm` is what the engines that are out weigh together."""
        allowed, weight = self._runners(barred, out_ppm)
        if not allowed.size:
            return None
        return self._decisions[int(self._won(np.array([point % self._size]), allowed, weight)[0])]

    def parts(
        self, slots: Ints, barred: Collection[str], out_ppm: int, by: Floats | None = None
    ) -> Mapping[str, float]:
        """Give each engine's part of these slots, 0..1, as `pick` gives them; of many, some are looked at.

        `by` is how much each slot counts for, above 0; each as much as another where it is not given. What is looked at
        takes a fraction of a millisecond, however many engines there are. An engine that wins none of it is given half
        a slot: it may win one of the others.
        """
        allowed, weight = self._runners(barred, out_ppm)
        if not allowed.size or not slots.size:
            return {}
        looked_at = min(slots.size, max(_LEAST, _LOOKS // allowed.size))
        places = np.arange(looked_at) * slots.size // looked_at
        counted = np.ones(looked_at) if by is None else by[places]
        won = self._won(slots[places], allowed, weight)
        counts: list[float] = np.bincount(won, counted, minlength=len(self.engines)).tolist()
        runners: list[int] = allowed.tolist()
        together = float(counted.sum())
        least = 0.5 * together / looked_at
        return {self.engines[i]: max(least, counts[i]) / together for i in runners}

    def _runners(self, barred: Collection[str], out_ppm: int) -> tuple[Ints, Floats]:
        """Give who may be taken, and with what weight; nobody where no engine of the failover may be."""
        allowed = np.array([i for i, e in enumerate(self.engines) if e not in barred], np.int64)
        total = int(self._share[allowed].sum()) if allowed.size else 0
        if total <= 0:
            return np.empty(0, np.int64), np.empty(0)
        weight = self._own[allowed] + out_ppm * self._share[allowed] / total
        return allowed[weight > 0], weight[weight > 0]

    def _won(self, slots: Ints, allowed: Ints, weight: Floats) -> Ints:
        """Give the index of the engine that wins each slot."""
        start, back = self._orders[allowed].T
        times = claim_times(self._size)[(slots[:, None] - start) * back % self._size]
        winners: Ints = allowed[np.argmin(times / weight, axis=1)]
        return winners

    def weights(self, ppm: Mapping[str, int], out: Collection[str]) -> Mapping[str, int]:
        """Give a route's weights while some engines are out, of those that are not; as they were where none is."""
        lost = sum(weight for e, weight in ppm.items() if e in out)
        total = sum(share for e, share in self.shares.items() if e not in out)
        if not lost or total <= 0:
            return ppm
        left = {e: weight for e, weight in ppm.items() if e not in out}
        for e, share in self.shares.items():
            if e not in out and (brought := lost * share // total):
                left[e] = left.get(e, 0) + brought
        return left
