"""A console over a desk that is fed by hand: fleets of any size, snapshots one after the other, a page to look at.

The fleet is `sites` sites with `engines` engines; each cluster has one route a model, and sends to `fanout` engines.
What is drawn comes from a seeded generator, so that a fleet is the same each time.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from aiohttp import web

from headrace.infra.console.api import Api, now_ms
from headrace.infra.console.app import Console
from headrace.infra.console.core.status import Link
from headrace.infra.console.core.timeline import Bounds
from headrace.infra.console.desk import Desk
from headrace.infra.console.events import Events
from headrace.infra.console.gate import Gate
from headrace.infra.console.page_files import page_files
from headrace.infra.console.why import Explain, Explainer
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport, weight_report
from headrace.schemas.codec import encode
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.overrides import Override
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.state import EngineState
from headrace.schemas.topics import DECISIONS, FLEET, PROFILES, SNAPSHOTS, STATE_ENGINE, TopicSettings, topic_table
from headrace.schemas.weights import (
    PPM,
    Excluded,
    Protected,
    Reason,
    RouteWeights,
    Snapshot,
    Target,
)
from past_ticks import solved, three_regions
from played_ticks import snapshot as played
from solver_inputs import engine_state, profile, spec

TABLE = topic_table(TopicSettings())
PERIOD_MS = 500
ROOMY = Bounds(10_000, 10_000_000)
AHEAD_MS = 3_600_000
"""Ticks are dated so far ahead: nothing goes stale, however slow the machine is that a test runs on."""


def raw(role: str, record: Record, offset: int = 0) -> RawRecord:
    return RawRecord(TABLE[role].name, 0, offset, 0, record.key, encode(record))


def snapshot_records(snapshot: Snapshot, before: Snapshot | None = None) -> Iterator[RawRecord]:
    """What the solver writes of a snapshot: changed routes, tombstones, the commit last."""
    old = {route.key: route for route in before.routes} if before else {}
    for route in snapshot.routes:
        if old.pop(route.key, None) != route:
            yield raw(SNAPSHOTS, route)
    for key in old:
        yield RawRecord(TABLE[SNAPSHOTS].name, 0, 0, 0, key, None)
    yield raw(SNAPSHOTS, snapshot.commit)


def committed(routes: Sequence[RouteWeights], version: int, tick_ms: int, **fields: object) -> Snapshot:
    made = played(sorted(routes, key=lambda route: route.key), tick_ms, PERIOD_MS, policy="lp")
    return replace(made, commit=replace(made.commit, version=version, **fields))  # type: ignore[arg-type]


def decision(snapshot: Snapshot, moved_rps: float, capacity_rps: float) -> SolveRecord:
    commit = snapshot.commit
    demand = sum(route.demand_rps for route in snapshot.routes)
    shed = sum(route.demand_rps * route.shed_ratio for route in snapshot.routes)
    sizes = (100, 50, 1, 20, 900, 1_700, 300, 2_000)
    found = (1.0, 0.0005, demand, capacity_rps, shed, moved_rps, demand / capacity_rps)
    head = (commit.epoch, commit.version, commit.mode, commit.status, "GLOP_DUAL", commit.sentence, commit.tick_ms)
    return SolveRecord(*head, (), "lp", "", *found, *sizes, (), ())


@dataclass
class Town:
    """A fleet with its clusters, ticking by hand.

    `hostile` is one engine's id; Avro takes any text, and whoever writes to the topic chooses it.
    """

    clusters: int = 3
    engines: int = 6
    models: int = 1
    sites: int = 3
    fanout: int = 3
    hostile: str | None = None
    seed: int = 1
    version: int = 0
    before: Snapshot | None = None
    routes: list[RouteWeights] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = np.random.default_rng(self.seed)
        width = len(str(self.engines - 1))
        self.names = [f"h100-{i % self.sites:02d}-{i:0{width}d}" for i in range(self.engines)]
        if self.hostile is not None:
            self.names[0] = self.hostile
        self.model_names = [f"model-{m}" for m in range(self.models)]

    def specs(self) -> Iterator[EngineSpec]:
        for i, name in enumerate(self.names):
            models = (self.model_names[i % self.models],)
            yield spec(name, site=f"site-{i % self.sites:02d}", models=models, capacity_rps_per_replica=25.0)

    def states(self, at_ms: int) -> Iterator[EngineState]:
        for i, name in enumerate(self.names):
            ready, waiting = 4 - (i % 7 == 3), float(i % 5)
            fields = {"replicas_ready": ready, "replicas_desired": 4, "running": 12.0, "waiting": waiting}
            yield engine_state(name, at_ms, kv_usage=round(0.3 + 0.1 * (i % 6), 2), **fields)

    def first_routes(self) -> list[RouteWeights]:
        found: list[RouteWeights] = []
        for c in range(self.clusters):
            for m, model in enumerate(self.model_names):
                serving = [i for i in range(self.engines) if i % self.models == m]
                start = (c * self.fanout) % max(1, len(serving))
                picked = [serving[(start + k) % len(serving)] for k in range(min(self.fanout, len(serving)))]
                found.append(self._route(f"cluster-{c:03d}", model, picked, 40.0 + 20.0 * (c % 4)))
        return found

    def _route(self, cluster: str, model: str, picked: Sequence[int], demand: float) -> RouteWeights:
        parts = self._dice.dirichlet(np.ones(len(picked)) * 3)
        ppm = [int(PPM * part) for part in parts]
        ppm[0] += PPM - sum(ppm)
        named = sorted(zip(picked, ppm, strict=True), key=lambda pair: self.names[pair[0]])
        targets = tuple(self._target(i, share) for i, share in named)
        # What is amiss with an engine is so in every route: routes that differ would be told by the newest of them.
        amiss = {
            self.engines - 1: (Reason.STALE, "silent for 41.2 s"),
            self.engines - 2: (Reason.DRAINED, "drained by ann: driver upgrade"),
        }
        excluded = tuple(Excluded(self.names[i], *said) for i, said in amiss.items() if i not in picked)
        excluded = tuple(sorted(excluded, key=lambda each: each.engine_id))
        return RouteWeights(
            cluster,
            model,
            "default",
            0,
            1,
            max(1, self.version),
            demand,
            targets,
            excluded,
            (),
            0.0,
            0.08,
            700.0,
            "as planned",
        )

    def _target(self, i: int, ppm: int) -> Target:
        use = round(0.35 + 0.62 * ((i * 37) % 100) / 100, 3)
        words = "nearest, and not full"
        return Target(self.names[i], None, ppm, ppm, ppm, 0.004, 0.08, 0.01, use, 420.0, Reason.CHEAPEST, words)

    def tick(self, at_ms: int, changed: int = 1, **fields: object) -> Iterator[RawRecord]:
        """The next snapshot: `changed` routes with other weights than before."""
        self.version += 1
        if not self.routes:
            self.routes = self.first_routes()
        else:
            for place in self._dice.choice(len(self.routes), min(changed, len(self.routes)), replace=False):
                self.routes[place] = self._moved(self.routes[place])
        limited = Protected(self.names[1 % len(self.names)], "outlier", 0.5, "2.1 times as slow as its peers")
        given = {"protections": (limited,)} | fields
        now = committed(self.routes, self.version, at_ms, **given)
        before, self.before = self.before, now
        yield from snapshot_records(now, before)
        yield raw(DECISIONS, decision(now, 3.0 * changed if before else 0.0, 25.0 * 4 * self.engines))

    def _moved(self, route: RouteWeights) -> RouteWeights:
        order = [t.weight_ppm for t in route.targets]
        turned = order[1:] + order[:1]
        targets = tuple(
            replace(t, weight_ppm=now, solver_ppm=now, previous_ppm=t.weight_ppm)
            for t, now in zip(route.targets, turned, strict=True)
        )
        demand = route.demand_rps * float(self._dice.uniform(0.95, 1.05))
        return replace(route, targets=targets, version=self.version, demand_rps=demand)


def soon_ms() -> int:
    """An instant of a tick that does not go stale."""
    return now_ms() + AHEAD_MS


def feed(desk: Desk, records: Iterator[RawRecord]) -> None:
    for record in records:
        desk.offer(record)


def settled_desk(town: Town, ticks: int = 5, bounds: Bounds = ROOMY, at_ms: int | None = None) -> Desk:
    """A desk that has read a fleet and some ticks, the last of them at `at_ms`, else at one that does not go stale."""
    desk, last_ms = Desk(TABLE, bounds), soon_ms() if at_ms is None else at_ms
    desk.offer(raw(PROFILES, profile(capacity_rps=25.0)))
    for each in town.specs():
        desk.offer(raw(FLEET, each))
    for state in town.states(last_ms):
        desk.offer(raw(STATE_ENGINE, state))
    for i in range(ticks):
        feed(desk, town.tick(last_ms - PERIOD_MS * (ticks - 1 - i)))
    desk.link(Link(None, "", caught_up=True))
    return desk


def override_record(override: Override) -> RawRecord:
    return raw(FLEET, override)


def three_regions_why(_: AskedWeight, wanted: Wanted) -> WeightReport:
    """The three regions' answer, whatever is asked: for pages whose topics are made up."""
    again = solved(three_regions(), version=wanted.version or 1)
    return weight_report(again, again.tick.snapshot, AskedWeight("cluster-b", "engine-b"), (), proved=True)


@dataclass
class Served:
    """A console that listens, with its desk."""

    url: str
    desk: Desk
    events: Events
    loop: asyncio.AbstractEventLoop

    def offer(self, records: Iterator[RawRecord]) -> None:
        """Feed the desk as the follower does, and wake the pages."""
        feed(self.desk, records)
        self.loop.call_soon_threadsafe(self.events.changed)

    def link(self, link: Link) -> None:
        self.desk.link(link)
        self.loop.call_soon_threadsafe(self.events.changed)


_files = cache(page_files)


@contextmanager
def served(
    desk: Desk, token: str | None = None, explain: Explain = three_regions_why, port: int = 0
) -> Iterator[Served]:
    """Serve a desk on a free port, on a thread of its own."""
    loop, events, pool = asyncio.new_event_loop(), Events(desk, 8), ThreadPoolExecutor(2)
    app = Console(Gate(token, (), 3_600.0), _files(), Api(desk, Explainer(explain), pool), events, secure=False)
    runner = web.AppRunner(app.application(), access_log=None, shutdown_timeout=1.0)

    async def start() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return int(runner.addresses[0][1])

    async def stop() -> None:
        events.stop()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        found = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
        yield Served(f"http://127.0.0.1:{found}", desk, events, loop)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        pool.shutdown()
        loop.close()
