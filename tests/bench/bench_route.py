"""How long a decision takes, beside other ways to pick an engine by weight, in one run on one machine.

    python tests/bench/bench_route.py

Decisions: `Router.route()` with everything it does (shed, hint, health, staleness, reasons) against `uhashring`,
weighted rendezvous hashing as one would write it, LiteLLM's router where it is installed (it is no dependency, and it
picks by weight for each request, without sessions), and the session router of vLLM's production-stack. That one is in
no package index (`vllm-router` there is another project, in Rust: bench_gateway has it as a proxy), so what stands here
is a stand-in: what it does with its hash ring for each request (bring the ring's nodes up to date with the live ones,
then ask it), without its request parsing, logging and coroutine; the real one takes longer. Each call is timed by
itself; what an empty call costs is taken off.

Tails: p99 over p50 while weights are swapped is the machine's as much as ours, so the same is shown of hashing the key
and nothing else, in turns with it (`yardstick`): what both have is the machine's.

Tables: ours against a weighted Maglev table in plain Python: time to build, and the share of sessions that each moves
when weights change, over twelve seeds.
"""

import importlib
import importlib.util
import math
import os
import sys
import threading
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
from maglev import maglev

SIZES = (10, 100, 1_000)
KEYS = [f"session-{i}" for i in range(20_000)]
LARGE = 65_537
TURNS = 8


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


def production_stack_pick(ppm: dict[str, int]) -> Callable[[str], object]:
    """Stand in for the session router of vLLM's production-stack; see above."""
    ring, live = uhashring.HashRing(), list(ppm)

    def pick(key: str) -> object:
        known, wanted = set(ring.get_nodes()), set(live)
        for gone in known - wanted:
            ring.remove_node(gone)
        for new in wanted - known:
            ring.add_node(new)
        return ring.get_node(key)

    return pick


def litellm_pick(ppm: dict[str, int]) -> Callable[[str], object] | None:
    """Give LiteLLM's router over as many deployments of one model, or None where it is not installed."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    if importlib.util.find_spec("litellm") is None:
        return None
    litellm = importlib.import_module("litellm")
    deployments = [
        {
            "model_name": MODEL,
            "litellm_params": {"model": "openai/m", "api_base": f"http://{e}:8000", "api_key": "none", "weight": w},
        }
        for e, w in ppm.items()
    ]
    router = litellm.Router(model_list=deployments, routing_strategy="simple-shuffle")
    question = [{"role": "user", "content": "x"}]
    return lambda _key: router.get_available_deployment(MODEL, messages=question)


def naive_rendezvous(ppm: dict[str, int]) -> Callable[[str], object]:
    def pick(key: str) -> str:
        def score(engine: str) -> float:
            return -math.log((xxhash.xxh3_64_intdigest(f"{engine}|{key}".encode()) + 1) / 2**64) / ppm[engine]

        return min(ppm, key=score)

    return pick


def ours(ppm: dict[str, int], size: int) -> list[str]:
    engines, owner = slot_table(ppm, size)
    return [engines[i] for i in owner]


def build_ms(build: Callable[[], object]) -> float:
    took = []
    for _ in range(5):
        start = time.perf_counter()
        build()
        took.append(time.perf_counter() - start)
    return min(took) * 1e3


def yardstick(key: str) -> object:
    """Do the least that any router of sessions does."""
    return xxhash.xxh3_64_intdigest(key.encode())


def while_swapping(ppm: dict[str, int]) -> tuple[list[float], list[float]]:
    """Give p50 and p99 in ns, of our decisions and of the yardstick, while another thread swaps snapshots all 50 ms.

    Each is the best of TURNS, which span several swaps each: what is left is what every turn had.
    """
    router, stop = Router(DataPlaneSettings(), CLUSTER), threading.Event()
    router.apply(snapshot(route_weights(ppm)))
    other = shaken(ppm)

    def swap() -> None:
        version = 1
        while not stop.wait(0.05):
            version += 1
            router.apply(snapshot(route_weights(other if version % 2 else ppm, version=version)))

    thread = threading.Thread(target=swap)
    thread.start()
    route = router.route
    try:
        turns = [
            (call_ns(lambda key: route(MODEL, key=key, now_ms=NOW_MS), KEYS * 8), call_ns(yardstick, KEYS * 8))
            for _ in range(TURNS)
        ]
        mine, least = np.min(turns, axis=0).tolist()
        return mine, least
    finally:
        stop.set()
        thread.join()


def changes(ppm: dict[str, int], seed: int) -> dict[str, dict[str, int]]:
    """Give what the weights may become: all of them shaken, one of them changed, one engine gone."""
    victim = list(ppm)[seed % len(ppm)]
    scaled = {f"one x{f:g}": {e: int(w * (f if e == victim else 1)) for e, w in ppm.items()} for f in (0.5, 1.25, 2.0)}
    gone = {e: w for e, w in ppm.items() if e != victim}
    return {"all +-10 %": shaken(ppm, seed)} | scaled | {"one gone": gone}


def moved(table: Callable[[dict[str, int], int], list[str]], before: list[str], after: dict[str, int]) -> int:
    return sum(a != b for a, b in zip(before, table(after, LARGE), strict=True))


def print_movement() -> list[tuple[str, float, str, bool]]:
    bars: list[tuple[str, float, str, bool]] = []
    print("\nsessions moved, ours over Maglev's     n    mean     max   (12 seeds)")
    for n in (10, 100):
        ratios: dict[str, list[float]] = {}
        for seed in range(12):
            ppm = weights(n, seed)
            tables = ours(ppm, LARGE), maglev(ppm, LARGE)
            for name, after in changes(ppm, seed).items():
                ratios.setdefault(name, []).append(moved(ours, tables[0], after) / moved(maglev, tables[1], after))
        for name, of in ratios.items():
            bound = 1.1 if name.startswith("all") else 1.0
            print(f"  {name:<30} {n:>7} {np.mean(of):>7.3f} {max(of):>7.3f}")
            bars.append((f"moved over Maglev, {name}, n={n}", float(np.mean(of)), f"<= {bound}", np.mean(of) <= bound))
    return bars


def main() -> None:
    p50s: dict[tuple[str, int], float] = {}
    quiet = math.nan
    print("one decision, ns: best of 3       n      p50      p99")
    for n in SIZES:
        ppm = weights(n)
        picks = [
            ("headrace Router.route", our_route(ppm), KEYS),
            ("headrace, one engine down", our_route_one_down(ppm), KEYS),
            ("uhashring get_node", uhashring_pick(ppm), KEYS),
            ("production-stack (stand-in)", production_stack_pick(ppm), KEYS[: 200_000 // n]),
            ("naive weighted rendezvous", naive_rendezvous(ppm), KEYS[: 200_000 // n]),
        ]
        litellm = litellm_pick(ppm) if n <= 100 else None
        if litellm is not None:
            picks.append(("LiteLLM router, shuffle", litellm, KEYS[:500]))
        # In turns, so that a busy moment of the machine does not fall on one of them alone.
        rounds = [[call_ns(pick, used) for _, pick, used in picks] for _ in range(3)]
        for (name, _, _), took in zip(picks, zip(*rounds, strict=True), strict=True):
            p50, p99 = np.min(took, axis=0)
            p50s[name, n] = p50
            if (name, n) == ("headrace Router.route", 100):
                quiet = p99 / p50
            print(f"{name:<27} {n:>7} {p50:>8.0f} {p99:>8.0f}")
    (p50, p99), (least_p50, least_p99) = while_swapping(weights(100))
    print(f"{'headrace, a swap per 50 ms':<27} {100:>7} {p50:>8.0f} {p99:>8.0f}")
    print(f"{'  yardstick beside it':<27} {100:>7} {least_p50:>8.0f} {least_p99:>8.0f}")
    print(f"  p99 over p50: {p99 / p50:.2f}; without a swap {quiet:.2f}; the yardstick's {least_p99 / least_p50:.2f}")
    print("\none table                            n  slots  build ms")
    builds: dict[str, float] = {}
    for n, size in ((100, 16_381), (10, LARGE), (100, LARGE), (1_000, LARGE)):
        ppm = weights(n)
        for name, build in (("headrace slot table", slot_table), ("weighted Maglev, Python", maglev)):
            took = build_ms(lambda build=build, ppm=ppm, size=size: build(ppm, size))
            builds.setdefault(name, took)
            print(f"{name:<30} {n:>7} {size:>6} {took:>9.1f}")
    ours_100 = p50s["headrace Router.route", 100]
    stack, ring = p50s["production-stack (stand-in)", 100], p50s["uhashring get_node", 100]
    flat = p50s["headrace Router.route", 1_000] / p50s["headrace Router.route", 10]
    faster = builds["weighted Maglev, Python"] / builds["headrace slot table"]
    bars = [
        ("p50 over production-stack's (stand-in), n=100", ours_100 / stack, "<= 0.1", ours_100 <= stack / 10),
        ("p50 over uhashring's, n=100", ours_100 / ring, "<= 0.6", ours_100 <= 0.6 * ring),
        ("p50 at n=1000 over n=10", flat, "<= 1.2", flat <= 1.2),
        ("p99 over p50, a swap per 50 ms", p99 / p50, "<= 1.6", p99 <= 1.6 * p50),
        ("Maglev's build time over ours, N=16381, n=100", faster, ">= 3", faster >= 3),
        *print_movement(),
    ]
    print()
    for name, value, bound, met in bars:
        print(f"{'met    ' if met else 'NOT MET'} {name}: {value:.3f} {bound}")


if __name__ == "__main__":
    main()
