"""Warm caches: a conversation trace over engines that keep 4,000 prefix blocks, and what each router makes of it.

    python tests/bench/bench_sessions.py [--made]

Mooncake's conversation trace (tests/bench/data/SOURCES.md): 12,031 requests of 7,373 sessions whose prompts are chains
of 512-token blocks; with --made two more kinds of conversations (session_traces.py) over 3 to 100 engines. Hits
are blocks found in the engine's cache (LRU, as far as the prompt's prefix reaches). Routers:

    random         by weight, each request by itself
    precise        sees every engine's cache, takes the longest match, the least loaded of equals: nobody can know more
    headrace       `Router.route(key=first block after the common one)`, 65 KB of slots and nothing else
    ... release    the same with `begin` and `end`, which let sessions of a crowded engine go
    ... unknowing  the same without being told which conversations are under way

Requests under way: 50 us per prompt token that is not cached, 20 ms per output token, and the trace ten times faster
than it was recorded, so that an engine has some thirty at once. Peaks are over instants with at least eight per engine.
"""

import argparse
import heapq
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from session_traces import AGENTS, CHAT, Request, faster, made, mooncake, sped

from dataplane_inputs import CLUSTER, MODEL, TICK_MS, route_weights, snapshot
from headrace.dataplane import AttemptOutcome, Decision, Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas
from headrace.schemas.weights import PPM

CACHED_BLOCKS = 4_000
MOONCAKE_SPEED = 10.0
MANY = 30
UNDER_WAY = 30.0
"""Requests at once per engine in the made traces."""


def equal(n: int) -> dict[str, int]:
    return dict(zip(names(n), quotas([1] * n, PPM), strict=True))


def unequal(n: int) -> dict[str, int]:
    """Give weights of which the largest is four times the smallest."""
    return dict(zip(names(n), quotas([1_000 + 3_000 * i // (n - 1) for i in range(n)], PPM), strict=True))


def names(n: int) -> list[str]:
    return [f"engine-{i}" for i in range(n)]


UNEVEN = dict(zip(names(8), quotas([5, 8, 10, 12, 13, 15, 17, 20], PPM), strict=True))


class Cache:
    """The last blocks an engine has used."""

    def __init__(self) -> None:
        self.blocks: OrderedDict[int, None] = OrderedDict()

    def match(self, blocks: Sequence[int]) -> int:
        return next((i for i, block in enumerate(blocks) if block not in self.blocks), len(blocks))

    def use(self, blocks: Sequence[int]) -> int:
        hits = self.match(blocks)
        for block in blocks:
            self.blocks[block] = None
            self.blocks.move_to_end(block)
        while len(self.blocks) > CACHED_BLOCKS:
            self.blocks.popitem(last=False)
        return hits


@dataclass
class Fleet:
    """The engines: their weights, their caches, and the requests under way at each."""

    ppm: dict[str, int]
    caches: dict[str, Cache]
    under_way: dict[str, int]

    @classmethod
    def of(cls, ppm: dict[str, int]) -> "Fleet":
        return cls(ppm, {e: Cache() for e in ppm}, dict.fromkeys(ppm, 0))


Pick = Callable[[Fleet, Request], tuple[str, Callable[[float], None]]]
"""Gives an engine, and what is to be called when the request is over."""


def nothing(_: float) -> None:
    """Nobody is told."""


def random_pick(ppm: dict[str, int]) -> Pick:
    rng, engines, p = np.random.default_rng(2), list(ppm), np.array(list(ppm.values())) / PPM
    return lambda _fleet, _request: (engines[rng.choice(len(engines), p=p)], nothing)


def precise_pick(fleet: Fleet, request: Request) -> tuple[str, Callable[[float], None]]:
    """Take the longest match beyond the block that all share, the least loaded for its weight of equals."""
    match = {e: max(1, cache.match(request.blocks)) for e, cache in fleet.caches.items()}
    longest = max(match.values())
    equals = (e for e in fleet.ppm if match[e] == longest)
    return min(equals, key=lambda e: (fleet.under_way[e] + 1) / fleet.ppm[e]), nothing


def headrace_pick(ppm: dict[str, int], *, release: bool = False, tells: bool = True) -> Pick:
    router = Router(DataPlaneSettings(), CLUSTER)
    router.apply(snapshot(route_weights(ppm)))
    now_ms = TICK_MS  # the snapshot stays fresh: its age is not what is measured here

    def ended(decision: Decision) -> Callable[[float], None]:
        return lambda _: router.end(MODEL, "default", decision, AttemptOutcome.OK, now_ms=now_ms)

    def pick(_: Fleet, request: Request) -> tuple[str, Callable[[float], None]]:
        established = request.established if tells else None
        decision = router.route(MODEL, key=request.key, established=established, now_ms=now_ms)
        if not release:
            return str(decision.engine_id), nothing
        router.begin(MODEL, "default", decision, now_ms=now_ms)
        return str(decision.engine_id), ended(decision)

    return pick


@dataclass(frozen=True)
class Measured:
    hit_ratio: float
    tv: float
    over_weight: float
    peak: float


def run(requests: Sequence[Request], ppm: dict[str, int], pick: Pick) -> Measured:
    fleet, hits, total, peak = Fleet.of(ppm), 0, 0, 0.0
    given = dict.fromkeys(ppm, 0)
    busy: list[tuple[float, int, str, Callable[[float], None]]] = []
    for number, request in enumerate(requests):
        while busy and busy[0][0] <= request.at_s:
            ends_s, _, engine, ended = heapq.heappop(busy)
            fleet.under_way[engine] -= 1
            ended(ends_s)
        engine, ended = pick(fleet, request)
        found = fleet.caches[engine].use(request.blocks)
        hits, total = hits + found, total + len(request.blocks)
        heapq.heappush(busy, (request.at_s + request.seconds(found), number, engine, ended))
        fleet.under_way[engine] += 1
        given[engine] += 1
        if len(busy) >= 8 * len(ppm):
            peak = max(peak, *(fleet.under_way[e] / (ppm[e] / PPM * len(busy)) for e in ppm))
    share = {e: given[e] / len(requests) for e in ppm}
    return Measured(
        hit_ratio=hits / total,
        tv=sum(abs(share[e] - ppm[e] / PPM) for e in ppm) / 2,
        over_weight=max(share[e] / (ppm[e] / PPM) for e in ppm),
        peak=peak,
    )


def say(name: str, value: float, bound: str, *, met: bool) -> None:
    print(f"    {'met    ' if met else 'NOT MET'} {name}: {value:.3f} {bound}")


def compare(name: str, requests: Sequence[Request], ppm: dict[str, int], *, barred: bool) -> None:
    """Run every router; the bars are those of the recorded trace, and are shown for it alone."""
    routers: dict[str, Pick] = {
        "random": random_pick(ppm),
        "precise longest match": precise_pick,
        "headrace": headrace_pick(ppm),
        "headrace, release": headrace_pick(ppm, release=True),
        "headrace, release, unknowing": headrace_pick(ppm, release=True, tells=False),
    }
    if len(ppm) > MANY:
        del routers["precise longest match"]  # it looks into every cache for every request
    print(f"\n{name:<40} hit ratio  share TV  most over weight  peak in flight / fair", flush=True)
    of = {router: run(requests, ppm, pick) for router, pick in routers.items()}
    for router, m in of.items():
        print(f"  {router:<38} {m.hit_ratio:>9.4f} {m.tv:>9.4f} {m.over_weight:>17.3f} {m.peak:>22.2f}", flush=True)
    plain, blind = of["headrace"], of["random"]
    if "precise longest match" in of:
        ratio = plain.hit_ratio / of["precise longest match"].hit_ratio
        say("hits over precise", ratio, ">= 0.95", met=ratio >= 0.95)
    if barred:
        say("hits over random", plain.hit_ratio / blind.hit_ratio, ">= 3", met=plain.hit_ratio >= 3 * blind.hit_ratio)
        say("share error", plain.tv, "<= 0.03", met=plain.tv <= 0.03)
        say("most over weight", plain.over_weight, "<= 1.15", met=plain.over_weight <= 1.15)
    for router in ("headrace, release", "headrace, release, unknowing"):
        released = of[router]
        lost = 1 - released.hit_ratio / plain.hit_ratio
        say(f"{router}: peak over fair share", released.peak, "<= 1.4", met=released.peak <= 1.4)
        say(f"{router}: hits lost", lost, "<= 0.03", met=lost <= 0.03)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--made", action="store_true", help="made traces too, over 3 to 100 engines")
    chosen = parser.parse_args()
    recorded = faster(mooncake(), MOONCAKE_SPEED)
    for name, ppm in (("equal weights", equal(8)), ("weights from 5 to 20 %", UNEVEN)):
        compare(f"mooncake, 8 engines, {name}", recorded, ppm, barred=True)
    for n in (3, 8, 30, 100) if chosen.made else ():
        for trace, of in (("chat", CHAT), ("agents", AGENTS)):
            requests = sped(made(of, seed=n), UNDER_WAY * n)
            compare(f"{trace}, {n} engines, weights 1 to 4", requests, unequal(n), barred=False)


if __name__ == "__main__":
    main()
