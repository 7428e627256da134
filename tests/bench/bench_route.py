"""How long a decision takes, beside other ways to pick an engine by weight, in one run on one machine.

    python tests/bench/bench_route.py

Decisions: `Router.route()` with everything it does (shed, hint, health, staleness, reasons) against `uhashring`, and
against weighted rendezvous hashing as one would write it. Each call is timed by itself; what an empty call costs is
taken off. Tables: ours against a weighted Maglev table in plain Python, and the share of sessions that each moves when
every weight changes by about a tenth, over the least that any table must move.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import uhashring
import xxhash

sys.path.insert(0, str(Path(__file__).parents[1]))

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, snapshot
from headrace.dataplane import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas, slot_table
from headrace.schemas.weights import PPM

SIZES = (10, 100, 1_000)
KEYS = [f"session-{i}" for i in range(20_000)]
LARGE = 65_537


def weights(n: int, seed: int = 1) -> dict[str, int]:
    shares = np.random.default_rng(seed).dirichlet(np.full(n, 4.0))
    return dict(zip((f"engine-{i:04d}" for i in range(n)), quotas([int(s * 1e9) for s in shares], PPM), strict=True))


def shaken(ppm: dict[str, int], seed: int = 2) -> dict[str, int]:
    noise = np.exp(np.random.default_rng(seed).normal(0.0, 0.1, len(ppm)))
    return dict(zip(ppm, quotas([int(w * x) for w, x in zip(ppm.values(), noise, strict=True)], PPM), strict=True))


def call_ns(pick: Callable[[str], object], keys: Sequence[str]) -> tuple[float, float]:
    """Give p50 and p99 of single calls in ns, without the clock's own cost."""
    clock = time.perf_counter_ns
    for key in keys[:1_000]:
        pick(key)
    took = []
    for key in keys:
        start = clock()
        pick(key)
        took.append(clock() - start)
    empty = []
    for _ in keys:
        start = clock()
        empty.append(clock() - start)
    p50, p99 = np.percentile(took, [50, 99]) - np.median(empty)
    return float(p50), float(p99)


def our_route(ppm: dict[str, int]) -> Callable[[str], object]:
    router = Router(DataPlaneSettings(), CLUSTER)
    router.apply(snapshot(route_weights(ppm)))
    route = router.route
    return lambda key: route(MODEL, key=key, now_ms=NOW_MS)


def our_route_one_down(ppm: dict[str, int]) -> Callable[[str], object]:
    router = Router(DataPlaneSettings(), CLUSTER)
    router.apply(snapshot(route_weights(ppm)))
    router.set_health(next(iter(ppm)), up=False)
    route = router.route
    return lambda key: route(MODEL, key=key, now_ms=NOW_MS)


def uhashring_pick(ppm: dict[str, int]) -> Callable[[str], object]:
    per_weight = max(1, min(ppm.values()))
    ring = uhashring.HashRing(
        nodes={e: {"weight": max(1, round(w / per_weight)), "vnodes": 20} for e, w in ppm.items()}
    )
    return ring.get_node


def naive_rendezvous(ppm: dict[str, int]) -> Callable[[str], object]:
    def pick(key: str) -> str:
        def score(engine: str) -> float:
            return -math.log((xxhash.xxh3_64_intdigest(f"{engine}|{key}".encode()) + 1) / 2**64) / ppm[engine]

        return min(ppm, key=score)

    return pick


def maglev(ppm: dict[str, int], size: int) -> list[str]:
    """Give a weighted Maglev table: engines take turns, as often as their weight over the largest."""
    hashes = {e: xxhash.xxh3_128_intdigest(e.encode()) for e in ppm}
    skip = {e: 1 + (h >> 64) % (size - 1) for e, h in hashes.items()}
    slot = {e: (h & 0xFFFF_FFFF_FFFF_FFFF) % size for e, h in hashes.items()}
    table: list[str] = [""] * size
    credit, largest, filled = dict.fromkeys(ppm, 0.0), max(ppm.values()), 0
    while True:
        for engine, weight in ppm.items():
            credit[engine] += weight / largest
            if credit[engine] < 1.0:
                continue
            credit[engine] -= 1.0
            at = slot[engine]
            while table[at]:
                at = (at + skip[engine]) % size
            table[at] = engine
            slot[engine] = (at + skip[engine]) % size
            filled += 1
            if filled == size:
                return table


def ours(ppm: dict[str, int], size: int) -> list[str]:
    engines, owner = slot_table(ppm, size)
    return [engines[i] for i in owner]


def build_ms(build: Callable[[], object]) -> float:
    took = []
    for _ in range(3):
        start = time.perf_counter()
        build()
        took.append(time.perf_counter() - start)
    return min(took) * 1e3


def moved_over_least(table: Callable[[dict[str, int], int], list[str]], ppm: dict[str, int]) -> float:
    after = shaken(ppm)
    moved = sum(a != b for a, b in zip(table(ppm, LARGE), table(after, LARGE), strict=True)) / LARGE
    return moved / (sum(abs(ppm[e] - after[e]) for e in ppm) / 2 / PPM)


def main() -> None:
    print("one decision, ns: best of 3       n      p50      p99")
    for n in SIZES:
        ppm = weights(n)
        picks = (
            ("headrace Router.route", our_route(ppm), KEYS),
            ("headrace, one engine down", our_route_one_down(ppm), KEYS),
            ("uhashring get_node", uhashring_pick(ppm), KEYS),
            ("naive weighted rendezvous", naive_rendezvous(ppm), KEYS[: 200_000 // n]),
        )
        # In turns, so that a busy moment of the machine does not fall on one of them alone.
        rounds = [[call_ns(pick, used) for _, pick, used in picks] for _ in range(3)]
        for (name, _, _), took in zip(picks, zip(*rounds, strict=True), strict=True):
            p50, p99 = np.min(took, axis=0)
            print(f"{name:<27} {n:>7} {p50:>8.0f} {p99:>8.0f}")
    print("\none table                            n  slots  build ms  moved / least")
    for n in SIZES:
        ppm = weights(n)
        for name, table in (("headrace slot table", ours), ("weighted Maglev, Python", maglev)):
            took = build_ms(lambda table=table, ppm=ppm: slot_table(ppm, LARGE) if table is ours else table(ppm, LARGE))
            print(f"{name:<30} {n:>7} {LARGE:>6} {took:>9.1f} {moved_over_least(table, ppm):>14.2f}")


if __name__ == "__main__":
    main()
