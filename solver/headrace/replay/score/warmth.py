"""How many conversations find their KV cache cold because their engine was changed under them.

    a change of weights that moves the share m of a route      cold <- cold + m (1 - cold)
    a request makes its conversation warm again                cold(t) = cold exp(-t / turn)

`turn` is the time between two turns of a conversation, so a move costs m x rate x turn lost hits: one for each
conversation that was moved. Where sessions are known, `sessions` counts them one by one instead.
"""

import math

from headrace.replay.score.movement import route_moved
from headrace.schemas.weights import RouteWeights


class Warmth:
    """The cold share of each route."""

    def __init__(self, turn_s: float) -> None:
        self._turn_s = turn_s
        self._cold: dict[bytes, float] = {}

    def move(self, before: RouteWeights, after: RouteWeights) -> None:
        """Take note of a change of weights."""
        moved = route_moved(before, after)
        if moved > 0.0:
            cold = self._cold.get(after.key, 0.0)
            self._cold[after.key] = cold + moved * (1.0 - cold)

    def pass_time(self, key: bytes, seconds: float) -> float:
        """Give the mean share of a route's requests that are cold over the next seconds, which then have passed."""
        cold = self._cold.get(key)
        if cold is None:
            return 0.0
        left = math.exp(-seconds / self._turn_s)
        if cold * left < 1e-6:
            del self._cold[key]
        else:
            self._cold[key] = cold * left
        return cold * (1.0 - left) * self._turn_s / seconds
