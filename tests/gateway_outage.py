"""A gateway under load whose Kafka is killed and comes back: what its callers see of that, and what it says of itself.

    up ─ kill ─ FRESH ─ FROZEN (two of four engines break: both are left out) ─ FALLBACK ─ restart ─ new weights

Waits are for what must come to hold; only how long Kafka stays away at least is a time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import aiohttp
import structlog

from gateway_inputs import CLUSTER, GOOD, MODEL, QUICK, faulty, say, until
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers.contract import Broker
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.weights_source import FromKafka
from headrace.infra.gateway_engine.behaviour import Fault
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.infra.provision import apply_topics
from headrace.schemas.assembly import digest_of
from headrace.schemas.bus.transactions import Committed, TransactionalPublisher
from headrace.schemas.codec import encode
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.topics import WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import PPM, FallbackTarget, Snapshot

RESUMES_WITHIN_S = 60.0


@dataclass(frozen=True)
class Pace:
    """How often the solver would write, for how long its weights live, and how many requests come a second."""

    period_ms: int
    live_ms: int
    rps: float


@dataclass
class Seen:
    """What became of the requests by phase, and what the gateway said in each."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    ages_s: dict[str, float] = field(default_factory=dict[str, float])
    staleness: dict[str, str] = field(default_factory=dict[str, str])
    ejected: tuple[str, ...] = ()
    resumed_after_s: float = 0.0
    queued: dict[str, int] = field(default_factory=dict[str, int])


def publish(broker: Broker, topic: str, snapshot: Snapshot) -> None:
    """Write a snapshot as the solver does."""
    publisher = TransactionalPublisher(broker.kafka, f"writer-of-{topic}")
    publisher.init()
    records = [(topic, route.key, encode(route)) for route in snapshot.routes]
    assert isinstance(publisher.publish_all([*records, (topic, COMMIT_KEY, encode(snapshot.commit))]), Committed)


def weights(urls: dict[str, str], pace: Pace, version: int) -> Snapshot:
    """Give equal weights that say how long they live, with a fallback of the same engines."""
    now_ms = time.time_ns() // 1_000_000
    made = even_weights(urls, CLUSTER, MODEL, now_ms, version=version)
    fallback = tuple(FallbackTarget(t.engine_id, t.address, PPM // len(urls)) for t in made.routes[0].targets)
    route = replace(made.routes[0], fallback=fallback)
    commit = replace(
        made.commit,
        period_ms=pace.period_ms,
        valid_until_ms=now_ms + pace.live_ms,
        digest=digest_of({route.key: route}),
    )
    return Snapshot(commit, (route,))


class Outage:
    """One run. `broker` is started, and is this run's alone."""

    def __init__(self, broker: Broker, topics: TopicSettings, pace: Pace) -> None:
        self.seen = Seen()
        self._broker = broker
        self._topics = topics
        self._topic = topic_table(topics)[WEIGHTS].name
        self._pace = pace
        self._phase = "up"
        self._open = Counter[str]()

    async def run(self, away_s: float, tell: Callable[[str], None] = lambda _: None) -> Seen:
        """Kill Kafka for at least so long, under load."""
        router = Router(DataPlaneSettings(), CLUSTER)
        source: list[FromKafka] = []

        def make(r: Router, say_problem: Callable[[str], None], new: Callable[[str], None]) -> FromKafka:
            source.append(FromKafka(self._broker.kafka, self._topics, r, say_problem, new))
            return source[0]

        engines = [SimulatedEngine(MODEL, GOOD) for _ in range(4)]
        async with (
            engines[0], engines[1], engines[2], engines[3],
            Running(QUICK, router, make, structlog.get_logger()) as gateway,
            aiohttp.ClientSession() as session,
        ):  # fmt: skip
            urls = {f"e{i}": engine.url for i, engine in enumerate(engines)}
            await self._new_weights(urls, 1)
            await until(lambda: gateway.readiness.version() == (1, 1), RESUMES_WITHIN_S)
            load = asyncio.create_task(self._load(session, f"http://127.0.0.1:{gateway.port}/v1/chat/completions"))
            await self._enough()
            killed_s = time.monotonic()
            await asyncio.to_thread(self._broker.kill)
            for phase in ("FROZEN", "FALLBACK"):
                self._phase = f"away, {phase}"
                await until(lambda phase=phase: gateway.readiness.report()[1]["weights"] == phase, 120.0)
                await self._note(gateway, session)
                await self._enough()
                if phase == "FROZEN":
                    await self._break_two(engines, router)
                tell(f"{time.monotonic() - killed_s:.1f} s: {self._phase}")
            await asyncio.sleep(max(0.0, killed_s + away_s - time.monotonic()))
            await self._note(gateway, session)
            tell(f"{time.monotonic() - killed_s:.1f} s: Kafka returns")
            await asyncio.to_thread(self._broker.restart)
            back_s, self._phase = time.monotonic(), "back"
            await self._weights_again(urls, gateway)
            self.seen.resumed_after_s = time.monotonic() - back_s
            await self._enough()
            await self._note(gateway, session)
            delivered = source[0].reporter.counts.delivered
            await until(lambda: source[0].reporter.counts.delivered > delivered, RESUMES_WITHIN_S)
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
            counts = source[0].reporter.counts
            self.seen.queued = {"published": counts.published, "delivered": counts.delivered, "failed": counts.failed}
            self.seen.queued["dropped"] = counts.dropped
        return self.seen

    async def _new_weights(self, urls: dict[str, str], version: int) -> None:
        await asyncio.to_thread(apply_topics, self._broker.kafka, self._topics)
        await asyncio.to_thread(publish, self._broker, self._topic, weights(urls, self._pace, version))

    async def _weights_again(self, urls: dict[str, str], gateway: Running) -> None:
        """Write on, each period, as a solver does, until the gateway follows."""
        version = 1
        async with asyncio.timeout(RESUMES_WITHIN_S):
            while gateway.readiness.version() == (1, 1):
                version += 1
                await self._new_weights(urls, version)
                await asyncio.sleep(min(1.0, self._pace.period_ms / 1000))

    async def _break_two(self, engines: list[SimulatedEngine], router: Router) -> None:
        """Let half of the fleet fail: more than may be ejected while the solver is heard from."""
        before, self._phase = self._phase, "away, two of four engines fail"
        await until(lambda: not self._open[before])
        for engine in engines[:2]:
            engine.behaviour = faulty(Fault.STATUS_500)
        await until(lambda: len(router.ejections(time.time_ns() // 1_000_000)) == 2, 60.0)
        self._phase = "away, both left out"
        self.seen.ejected = tuple(sorted(e.engine_id for e in router.ejections(time.time_ns() // 1_000_000)))
        await self._enough()
        for engine in engines[:2]:
            engine.behaviour = GOOD
        self._phase = before

    async def _note(self, gateway: Running, session: aiohttp.ClientSession) -> None:
        async with session.get(f"http://127.0.0.1:{gateway.port}/readyz") as answer:
            document = await answer.json()
        self.seen.staleness[self._phase], self.seen.ages_s[self._phase] = document["weights"], document["age_s"]

    async def _enough(self) -> None:
        """Wait until this phase has seen a good number of requests."""
        counted = self.seen.statuses.setdefault(self._phase, Counter())
        before = counted.total()
        await until(lambda: counted.total() >= before + 20, 60.0)

    async def _load(self, session: aiohttp.ClientSession, url: str) -> None:
        async def one(number: int, phase: str) -> None:
            body = {"model": MODEL, "messages": say(f"conversation {number % 97}"), "stream": number % 2 == 0}
            try:
                async with session.post(url, json=body) as answer:
                    await answer.read()
                    status = answer.status
            except (aiohttp.ClientError, RuntimeError):  # a session that is closed is the end of the run
                status = 0
            finally:
                self._open[phase] -= 1
            self.seen.statuses.setdefault(phase, Counter())[status] += 1

        number = 0
        async with asyncio.TaskGroup() as asking:
            while True:
                number += 1
                self._open[self._phase] += 1
                asking.create_task(one(number, self._phase))
                await asyncio.sleep(1.0 / self._pace.rps)
