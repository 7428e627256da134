"""The gateway on real brokers: serves by the weights, follows them, reports what it sees, goes on without a broker."""

import asyncio
import time
from collections.abc import Callable

import aiohttp
import pytest
import structlog

from conftest import fresh_topics
from gateway_inputs import CLUSTER, GOOD, MODEL, QUICK, on_loop, say, until
from gateway_outage import Outage, Pace, publish
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers import start_broker
from headrace.infra.brokers.contract import Broker
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.weights_source import FromKafka
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.codec import decode, must
from headrace.schemas.signals import Demand, EngineSignals, Vantage
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, WEIGHTS, TopicSettings, topic_table


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

            async def ask(*, stream: bool = False) -> int:
                url = f"http://127.0.0.1:{gateway.port}/v1/chat/completions"
                async with session.post(url, json={"model": MODEL, "messages": say(), "stream": stream}) as answer:
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
            latencies = CompactedReader(broker.kafka, (table[SIGNALS_ENGINE].name,))
            told: list[EngineSignals] = []
            async with asyncio.timeout(20.0):
                # Of `one` there are outcomes: its answers were no streams, so no latency of it was seen.
                while {signals.engine_id for signals in told if signals.distributions} != {"two"}:
                    assert await ask(stream=True) == 200
                    records = await asyncio.to_thread(latencies.poll, 0.1)
                    told += [must(decode(EngineSignals, record.value)) for record in records if record.value]
            assert {signals.vantage for signals in told} == {Vantage.GATEWAY}

    on_loop(test)


@pytest.mark.embedded
def test_no_request_fails_while_kafka_is_away_and_new_weights_are_followed_when_it_is_back() -> None:
    with start_broker("embedded") as broker:
        seen = on_loop(lambda: Outage(broker, fresh_topics(), Pace(300, 6_000, 100.0)).run(away_s=0.0))
    broken = seen.statuses.pop("away, two of four engines fail")
    assert set(broken) <= {200, 500}
    phases = ("up", "away, FROZEN", "away, both left out", "away, FALLBACK", "back")
    assert {phase: set(statuses) for phase, statuses in seen.statuses.items()} == {phase: {200} for phase in phases}
    assert (seen.staleness["away, FROZEN"], seen.staleness["away, FALLBACK"]) == ("FROZEN", "FALLBACK")
    assert seen.ages_s["away, FALLBACK"] >= 6.0
    assert seen.ejected == ("e0", "e1")  # together half of the weight: more than may be out while the solver is heard
