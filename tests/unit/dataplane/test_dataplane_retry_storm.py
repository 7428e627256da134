"""Half of the engines fail under eight gateways: how many attempts a request becomes, and how the fleet comes back.

An engine holds a request for a second and at most 40 at once; beyond that it rejects. Ten engines carry 400 requests
a second and are asked for 240, so the healthy half alone cannot carry them: what a retry storm feeds on.
"""

import heapq
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from dataplane_inputs import CLUSTER, MODEL, TICK_MS, route_weights, snapshot
from headrace.dataplane import AttemptOutcome, Outcome, Router
from headrace.dataplane.settings import DataPlaneSettings

ENGINES = [f"engine-{i}" for i in range(10)]
AT_ONCE = 40
HOLDS_MS = 1_000
RATE_RPS = 240.0
FAILS_MS, HEALS_MS, END_MS = 20_000, 60_000, 130_000


@dataclass
class Storm:
    """One run; `bounded` asks the budget for each retry, otherwise a request is sent on until nobody is left."""

    bounded: bool
    served: Counter[int] = field(default_factory=Counter[int])
    """Requests served, by second of arrival; likewise the others."""
    offered: Counter[int] = field(default_factory=Counter[int])
    attempts: Counter[int] = field(default_factory=Counter[int])

    def run(self) -> "Storm":
        self.routers = [Router(DataPlaneSettings(source=f"gateway-{i}"), CLUSTER) for i in range(8)]
        self.busy: list[tuple[int, int, object]] = []
        self.held: Counter[str] = Counter()
        self.publish(0)
        self.rng = rng = np.random.default_rng(3)
        at_ms, number = 0.0, 0
        while (at_ms := at_ms + rng.exponential(1_000 / RATE_RPS)) < END_MS:
            if int(at_ms) // 500 > (self.version - 1):
                self.publish(int(at_ms) // 500)
            self.end_until(int(at_ms))
            self.request(int(at_ms), number)
            number += 1
        return self

    def publish(self, tick: int) -> None:
        """The solver goes on publishing the same weights: it has not noticed."""
        self.version = tick + 1
        weights = route_weights(dict.fromkeys(ENGINES, 100_000), retry_ratio=0.1)
        for router in self.routers:
            router.apply(snapshot(weights, version=self.version, tick_ms=TICK_MS + tick * 500))

    def end_until(self, now_ms: int) -> None:
        while self.busy and self.busy[0][0] <= now_ms:
            ends_ms, gateway, decision = heapq.heappop(self.busy)
            self.held[decision.engine_id] -= 1
            self.end(self.routers[gateway], decision, AttemptOutcome.OK, ends_ms)

    def end(self, router: Router, decision: object, outcome: AttemptOutcome, now_ms: int) -> None:
        router.end(MODEL, "default", decision, outcome, now_ms=TICK_MS + now_ms)

    def request(self, now_ms: int, number: int) -> None:
        router, key, tried = self.routers[number % 8], f"session-{self.rng.integers(2_000)}", []
        self.offered[now_ms // 1_000] += 1
        while True:
            decision = router.route(MODEL, key=key, exclude=tuple(tried), now_ms=TICK_MS + now_ms)
            router.report(MODEL, "default", decision, retry=bool(tried), now_ms=TICK_MS + now_ms)
            if decision.outcome is not Outcome.ROUTED:
                return
            self.attempts[now_ms // 1_000] += 1
            router.begin(MODEL, "default", decision, now_ms=TICK_MS + now_ms)
            outcome = self.engine(str(decision.engine_id), now_ms)
            if outcome is AttemptOutcome.OK:
                self.served[now_ms // 1_000] += 1
                self.held[decision.engine_id] += 1
                heapq.heappush(self.busy, (now_ms + HOLDS_MS, number % 8, _Ordered(decision)))
                return
            self.end(router, decision, outcome, now_ms)
            tried.append(decision.engine_id)
            if self.bounded and not router.may_retry(MODEL, "default", tuple(tried)):
                return

    def engine(self, engine_id: str, now_ms: int) -> AttemptOutcome:
        if FAILS_MS <= now_ms < HEALS_MS and engine_id in ENGINES[:5]:
            return AttemptOutcome.ERROR
        return AttemptOutcome.OK if self.held[engine_id] < AT_ONCE else AttemptOutcome.REJECTED

    def amplification(self, from_ms: int, to_ms: int) -> float:
        seconds = range(from_ms // 1_000, to_ms // 1_000)
        return sum(self.attempts[s] for s in seconds) / sum(self.offered[s] for s in seconds)

    def served_share(self, second: int, length: int = 5) -> float:
        seconds = range(second, second + length)
        return sum(self.served[s] for s in seconds) / sum(self.offered[s] for s in seconds)


class _Ordered:
    """A decision that a heap may compare: two that end at the same instant are as good as each other."""

    def __init__(self, decision: object) -> None:
        self.decision = decision

    def __lt__(self, other: object) -> bool:
        return False

    def __getattr__(self, name: str) -> object:
        return getattr(self.decision, name)


@pytest.fixture(scope="module")
def bounded() -> Storm:
    return Storm(bounded=True).run()


def test_retries_stay_within_their_share_where_unbounded_ones_make_a_storm(bounded: Storm) -> None:
    unbounded = Storm(bounded=False).run()
    print(
        f"attempts per request while half of the engines fail: {bounded.amplification(FAILS_MS, HEALS_MS):.3f}, "
        f"unbounded {unbounded.amplification(FAILS_MS, HEALS_MS):.3f}"
    )
    assert bounded.amplification(FAILS_MS, HEALS_MS) <= 1.15
    assert unbounded.amplification(FAILS_MS, HEALS_MS) > 2.5


def test_nothing_is_retried_while_all_is_well(bounded: Storm) -> None:
    assert bounded.amplification(0, FAILS_MS) <= 1.01
    assert bounded.served_share(5, 15) > 0.999


def test_while_half_fails_the_other_half_goes_on_serving(bounded: Storm) -> None:
    # The healthy half can serve 200 of 240; three of the five that fail are ejected, within 30 % of the weight.
    shares = [bounded.served_share(s) for s in range(25, 55, 5)]
    print("served while half fails:", [f"{s:.2f}" for s in shares])
    assert min(shares) > 0.6


def test_the_fleet_comes_back_without_a_second_collapse(bounded: Storm) -> None:
    shares = [bounded.served_share(s) for s in range(65, 125, 5)]
    print("served after the recovery:", [f"{s:.2f}" for s in shares])
    assert min(shares) > 0.98
    assert bounded.amplification(70_000, END_MS) <= 1.05
