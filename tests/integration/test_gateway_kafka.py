"""The gateway on real brokers: not ready without weights, serves by them, follows them, reports the demand it sees."""

import asyncio
import time
from collections.abc import Callable

import aiohttp
import structlog

from gateway_inputs import CLUSTER, GOOD, MODEL, QUICK, on_loop, say, until
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers.contract import Broker
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.weights_source import FromKafka
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.transactions import Committed, TransactionalPublisher
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.signals import Demand
from headrace.schemas.topics import SIGNALS_DEMAND, WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot


def publish(broker: Broker, topic: str, snapshot: Snapshot) -> None:
    publisher = TransactionalPublisher(broker.kafka, f"writer-of-{topic}")
    publisher.init()
    records = [(topic, route.key, encode(route)) for route in snapshot.routes]
    assert isinstance(publisher.publish_all([*records, (topic, COMMIT_KEY, encode(snapshot.commit))]), Committed)


def offered(broker: Broker, topic: str, seen: list[Demand]) -> Callable[[], int]:
    """Give what counts the requests that the topic tells of, read anew at each call."""
    reader = CompactedReader(broker.kafka, (topic,))

    def count() -> int:
        seen.extend(must(decode(Demand, record.value)) for record in reader.poll(0.1) if record.value)
        return sum(demand.offered for demand in seen)

    return count


def test_weights_come_in_and_demand_goes_out(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)

    async def test() -> None:
        router = Router(DataPlaneSettings(), CLUSTER)
        async with (
            SimulatedEngine(MODEL, GOOD) as one,
            SimulatedEngine(MODEL, GOOD) as two,
            Running(
                QUICK, router, lambda r, say, new: FromKafka(broker.kafka, topics, r, say, new), structlog.get_logger()
            ) as gateway,
            aiohttp.ClientSession() as session,
        ):

            async def ask() -> int:
                url = f"http://127.0.0.1:{gateway.port}/v1/chat/completions"
                async with session.post(url, json={"model": MODEL, "messages": say()}) as answer:
                    await answer.read()
                    return answer.status

            assert not gateway.readiness.ready()
            now_ms = time.time_ns() // 1_000_000
            first = even_weights({"one": one.url}, CLUSTER, MODEL, now_ms)
            await asyncio.to_thread(publish, broker, table[WEIGHTS].name, first)
            await until(gateway.readiness.ready, 20.0)
            assert [await ask() for _ in range(5)] == [200] * 5
            assert one.served == 5
            second = even_weights({"two": two.url}, CLUSTER, MODEL, now_ms, version=2)
            await asyncio.to_thread(publish, broker, table[WEIGHTS].name, second)
            await until(lambda: gateway.readiness.version() == (1, 2), 20.0)
            assert [await ask() for _ in range(3)] == [200] * 3
            assert two.served == 3
            seen: list[Demand] = []
            count = offered(broker, table[SIGNALS_DEMAND].name, seen)
            async with asyncio.timeout(20.0):
                while await asyncio.to_thread(count) < 8:  # noqa: ASYNC110 - a reader has no event
                    await asyncio.sleep(0.05)
            assert {str(demand.route) for demand in seen} == {f"{CLUSTER}|{MODEL}|default"}
            assert sum(demand.offered for demand in seen) == 8

    on_loop(test)
