"""Warm caches: a conversation trace over engines that keep 4,000 prefix blocks, and what each router makes of it.

    python tests/bench/bench_sessions.py

Mooncake's conversation trace (tests/bench/data/SOURCES.md): 12,031 requests of 7,373 sessions whose prompts are chains
of 512-token blocks. Hits are blocks found in the engine's cache (LRU, as far as the prompt's prefix reaches). Routers:

    random         by weight, each request by itself
    precise        sees every engine's cache, takes the longest match, the least loaded of equals: nobody can know more
    headrace       `Router.route(key=first block after the common one)`, 65 KB of slots and nothing else
    ... release    the same with `begin` and `end`, which let sessions of a crowded engine go
    ... unknowing  the same without being told which conversations are under way

Requests under way: 50 us per prompt token that is not cached, 20 ms per output token, and the trace ten times faster
than it was recorded, so that an engine has some thirty at once. Peaks are over instants with at least eight per engine.
"""

import csv
import gzip
import heapq
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dataplane_inputs import CLUSTER, MODEL, TICK_MS, route_weights, snapshot
from headrace.dataplane import AttemptOutcome, Decision, Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas
from headrace.schemas.weights import PPM

TRACE = Path(__file__).parent / "data/mooncake_conversation_blocks.csv.gz"
ENGINES = [f"engine-{i}" for i in range(8)]
CACHED_BLOCKS = 4_000
BLOCK_TOKENS = 512
PREFILL_S_PER_TOKEN = 5e-5
DECODE_S_PER_TOKEN = 0.02
SPEED = 10.0
EQUAL = dict.fromkeys(ENGINES, PPM // 8)
UNEQUAL = dict(zip(ENGINES, quotas([5, 8, 10, 12, 13, 15, 17, 20], PPM), strict=True))


@dataclass(frozen=True)
class Request:
    at_s: float
    key: str
    blocks: tuple[int, ...]
    input_tokens: int
    output_tokens: int
    established: bool


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
    """Eight engines: their caches, and the requests under way at each."""

    ppm: dict[str, int]
    caches: dict[str, Cache] = field(default_factory=lambda: {e: Cache() for e in ENGINES})
    under_way: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))


Pick = Callable[[Fleet, Request], tuple[str, Callable[[float], None]]]
"""Gives an engine, and what is to be called when the request is over."""


def nothing(_: float) -> None:
    """Nobody is told."""


def trace() -> list[Request]:
    rng, seen, requests = np.random.default_rng(1), set[str](), list[Request]()
    with gzip.open(TRACE, "rt") as file:
        rows = sorted((float(row["t_s"]) + rng.uniform(0, 3), i, row) for i, row in enumerate(csv.DictReader(file)))
    for at_s, _, row in rows:
        blocks = tuple(_blocks(row["blocks"]))
        key = str(blocks[1] if len(blocks) > 1 else blocks[0])
        tokens = int(row["input_tokens"]), int(row["output_tokens"])
        requests.append(Request(at_s / SPEED, key, blocks, *tokens, established=key in seen))
        seen.add(key)
    return requests


def _blocks(ranges: str) -> list[int]:
    bounds = [part.partition("-") for part in ranges.split()]
    return [block for first, _, last in bounds for block in range(int(first), int(last or first) + 1)]


def random_pick(ppm: dict[str, int]) -> Pick:
    rng, p = np.random.default_rng(2), np.array([ppm[e] for e in ENGINES]) / PPM
    return lambda _fleet, _request: (ENGINES[rng.choice(8, p=p)], nothing)


def precise_pick(fleet: Fleet, request: Request) -> tuple[str, Callable[[float], None]]:
    """Take the longest match beyond the block that all share, the least loaded for its weight of equals."""
    match = {e: max(1, cache.match(request.blocks)) for e, cache in fleet.caches.items()}
    longest = max(match.values())
    return min(
        (e for e in ENGINES if match[e] == longest), key=lambda e: (fleet.under_way[e] + 1) / fleet.ppm[e]
    ), nothing


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
    fleet, hits, total, peak = Fleet(ppm), 0, 0, 0.0
    given = dict.fromkeys(ENGINES, 0)
    busy: list[tuple[float, int, str, Callable[[float], None]]] = []
    for number, request in enumerate(requests):
        while busy and busy[0][0] <= request.at_s:
            ends_s, _, engine, ended = heapq.heappop(busy)
            fleet.under_way[engine] -= 1
            ended(ends_s)
        engine, ended = pick(fleet, request)
        found = fleet.caches[engine].use(request.blocks)
        hits, total = hits + found, total + len(request.blocks)
        missed = max(0, request.input_tokens - found * BLOCK_TOKENS)
        ends_s = request.at_s + missed * PREFILL_S_PER_TOKEN + request.output_tokens * DECODE_S_PER_TOKEN
        heapq.heappush(busy, (ends_s, number, engine, ended))
        fleet.under_way[engine] += 1
        given[engine] += 1
        if len(busy) >= 8 * len(ENGINES):
            peak = max(peak, *(fleet.under_way[e] / (ppm[e] / PPM * len(busy)) for e in ENGINES))
    share = {e: given[e] / len(requests) for e in ENGINES}
    return Measured(
        hit_ratio=hits / total,
        tv=sum(abs(share[e] - ppm[e] / PPM) for e in ENGINES) / 2,
        over_weight=max(share[e] / (ppm[e] / PPM) for e in ENGINES),
        peak=peak,
    )


def say(name: str, value: float, bound: str, *, met: bool) -> None:
    print(f"    {'met    ' if met else 'NOT MET'} {name}: {value:.3f} {bound}")


def main() -> None:
    requests = trace()
    for name, ppm in (("equal weights", EQUAL), ("weights from 5 to 20 %", UNEQUAL)):
        routers: dict[str, Pick] = {
            "random": random_pick(ppm),
            "precise longest match": precise_pick,
            "headrace": headrace_pick(ppm),
            "headrace, release": headrace_pick(ppm, release=True),
            "headrace, release, unknowing": headrace_pick(ppm, release=True, tells=False),
        }
        print(f"\n{name:<32} hit ratio  share TV  most over weight  peak in flight / fair")
        of = {router: run(requests, ppm, pick) for router, pick in routers.items()}
        for router, m in of.items():
            print(f"  {router:<30} {m.hit_ratio:>9.4f} {m.tv:>9.4f} {m.over_weight:>17.3f} {m.peak:>22.2f}")
        plain, precise, blind = of["headrace"], of["precise longest match"], of["random"]
        say(
            "hits over precise",
            plain.hit_ratio / precise.hit_ratio,
            ">= 0.95",
            met=plain.hit_ratio >= 0.95 * precise.hit_ratio,
        )
        say("hits over random", plain.hit_ratio / blind.hit_ratio, ">= 3", met=plain.hit_ratio >= 3 * blind.hit_ratio)
        say("share error", plain.tv, "<= 0.03", met=plain.tv <= 0.03)
        say("most over weight", plain.over_weight, "<= 1.15", met=plain.over_weight <= 1.15)
        for router in ("headrace, release", "headrace, release, unknowing"):
            released = of[router]
            lost = 1 - released.hit_ratio / plain.hit_ratio
            say(f"{router}: peak over fair share", released.peak, "<= 1.4", met=released.peak <= 1.4)
            say(f"{router}: hits lost", lost, "<= 0.03", met=lost <= 0.03)


if __name__ == "__main__":
    main()
