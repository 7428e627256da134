"""Weighted rendezvous: engine = argmin over allowed e of  -ln(u(point, e)) / w_e,  u uniform in (0, 1) from hashes.

Each session has its own order of engines, first places are shared by weight, and taking an engine out moves only its
own sessions. O(engines) a call, so it serves where the slot table cannot: the last look at a route whose engines are
mostly down, and the fallbacks. No allowed engine with a weight: None.

Source: Schindelhauer and Schomaker, "Weighted distributed hash tables", SPAA 2005.
"""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.dataplane.decision import Decision, DecisionReason

_FIRST: Final = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND: Final = np.uint64(0x94D0_49BB_1331_11EB)
"""Multipliers of the splitmix64 finaliser (Steele, Lea and Flood 2014)."""


class Candidates:
    """The engines that may be picked, each with its weight and its ready-made decision. Never changes."""

    __slots__ = ("_hashes", "_weights", "decisions")

    def __init__(self, decisions: Sequence[Decision], weights: Sequence[float]) -> None:
        kept = [(d, w) for d, w in zip(decisions, weights, strict=True) if w > 0 and d.engine_id is not None]
        self.decisions = tuple(decision for decision, _ in kept)
        self._weights = np.array([weight for _, weight in kept], np.float64)
        hashes = [xxhash.xxh3_64_intdigest((d.engine_id or "").encode()) for d in self.decisions]
        self._hashes = np.array(hashes, np.uint64)

    def pick(self, point: int, barred: Collection[str], reason: DecisionReason) -> Decision | None:
        """Give the engine of the session at `point` (64 bits) that is not barred; None where all are.

        Its propensity is its weight over that of all that are not barred.
        """
        allowed = [i for i, d in enumerate(self.decisions) if d.engine_id not in barred]
        if not allowed:
            return None
        weights = self._weights[allowed]
        first = int(np.argmin(-np.log(_uniform(self._hashes[allowed] ^ np.uint64(point))) / weights))
        return self.decisions[allowed[first]].because(reason, float(weights[first] / weights.sum()))


def _uniform(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Mix 64 bits well and give them as a number inside (0, 1)."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x ^= x >> np.uint64(31)
    uniform: npt.NDArray[np.float64] = ((x >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniform
