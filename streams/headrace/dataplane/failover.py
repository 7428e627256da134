"""The engine of a session whose own is out: a race for its slot by the weights that the failover makes.

    weight_j = own weight + what the engines that are out weighed x failover share / shares of those that are not
    engine   = argmin over j of  claim time of the session's slot / weight_j          (as in `slot_table`)

The solver says in each route where sessions shall go if an engine is lost before it has heard of it: to where there is
room. The next snapshot will give about these weights, and its slot table is the same race: so the session stays there.
Only the lost engines' slots are raced for: until that snapshot the failover's engines get less than their shares of
them, and survivors without a share get some. Where a session goes is given up for its staying there; `part`, and the
propensity made of it, are the shares, not what the race comes to.

Engines that are left out, of the failover too, take no part; where none of it may be taken there is no answer.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from headrace.dataplane.decision import Decision
from headrace.dataplane.slot_table import claim_times, order_of


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
        allowed = np.array([i for i, e in enumerate(self.engines) if e not in barred], np.int64)
        total = int(self._share[allowed].sum()) if allowed.size else 0
        if total <= 0:
            return None
        weight = self._own[allowed] + out_ppm * self._share[allowed] / total
        allowed, weight = allowed[weight > 0], weight[weight > 0]
        start, back = self._orders[allowed].T
        times = claim_times(self._size)[(point % self._size - start) * back % self._size]
        return self._decisions[int(allowed[int(np.argmin(times / weight))])]

    def part(self, engine_id: str, barred: Collection[str]) -> float:
        """Give an engine's part of those that must move, 0..1; 0 where nobody may be taken."""
        total = sum(share for e, share in self.shares.items() if e not in barred)
        return self.shares.get(engine_id, 0) / total if total > 0 else 0.0

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
