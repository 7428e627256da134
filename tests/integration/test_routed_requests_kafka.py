"""Single requests, from a real client through a gateway onto a broker, out with the export and back with the import."""

import asyncio
import time
from pathlib import Path

import structlog
from openai import AsyncOpenAI

from conftest import fresh_topics
from gateway_inputs import CLUSTER, GOOD, MODEL, QUICK, on_loop, until
from gateway_outage import publish
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers.contract import Broker
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.weights_source import FromKafka
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.infra.provision import apply_topics
from headrace.replay.core.history import Span
from headrace.replay.core.routed import Sampled, sample_of
from headrace.replay.sources.export import Exporter
from headrace.replay.sources.folder import HistoryFolder
from headrace.replay.sources.restore import Restorer
from headrace.schemas.routed import RoutedOutcome
from headrace.schemas.topics import ROUTED, WEIGHTS, TopicSettings, topic_table

USERS, TURNS = 6, 3


def exported(broker: Broker, topics: TopicSettings, span: Span, folder: Path) -> tuple[Sampled, ...]:
    Exporter(broker.kafka, topics, span, folder, lambda _topic, _count: None).export()
    history = HistoryFolder(folder)
    records = [record for place in history.places(ROUTED) for record in history.read(place)]
    assert not any(b"user-" in (record.value or b"") for record in records)
    fold = sample_of(records, history.span)
    assert fold.findings() == ()
    return fold.requests()


def test_sampled_requests_go_from_a_client_to_the_folder_of_an_export_and_back(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    table = topic_table(topics)
    began_ms = time.time_ns() // 1_000_000

    async def test() -> dict[str, list[str]]:
        router = Router(DataPlaneSettings(source="gateway-1", routed_share=1.0), CLUSTER)
        async with (
            SimulatedEngine(MODEL, GOOD) as one,
            SimulatedEngine(MODEL, GOOD) as two,
            Running(
                QUICK, router, lambda r, say, new: FromKafka(broker.kafka, topics, r, say, new), structlog.get_logger()
            ) as gateway,
            AsyncOpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key="none", max_retries=0) as client,
        ):
            weights = even_weights({"one": one.url, "two": two.url}, CLUSTER, MODEL, began_ms)
            await asyncio.to_thread(publish, broker, table[WEIGHTS].name, weights)
            await until(gateway.readiness.ready, 20.0)
            engines: dict[str, list[str]] = {}
            for _ in range(TURNS):
                for number in range(USERS):
                    user = f"user-{number}"
                    raw = await client.chat.completions.with_raw_response.create(
                        model=MODEL, messages=[{"role": "user", "content": "hello"}], user=user
                    )
                    header = raw.headers["x-headrace-decision"]
                    engines.setdefault(user, []).append(header.split('engine="')[1].split('"')[0])
            return engines

    engines = on_loop(test)  # the gateway's end publishes what is not published yet
    span = Span(began_ms, time.time_ns() // 1_000_000 + 1)
    found = exported(broker, topics, span, tmp_path / "history")
    by_session: dict[int | None, list[str]] = {}
    for sampled in found:
        by_session.setdefault(sampled.request.session, []).append(sampled.request.engine_id)
    assert None not in by_session
    assert sorted(by_session.values()) == sorted(engines.values())
    assert {sampled.key for sampled in found} == {f"{CLUSTER}|{MODEL}|default".encode()}
    assert {sampled.request.outcome for sampled in found} == {RoutedOutcome.OK}
    assert {sampled.request.propensity for sampled in found} == {0.5}
    assert all(sampled.request.e2e_s for sampled in found)

    elsewhere = fresh_topics()
    apply_topics(broker.kafka, elsewhere)
    Restorer(broker.kafka, elsewhere, lambda _topic, _count: None).restore(tmp_path / "history")
    assert exported(broker, elsewhere, span, tmp_path / "again") == found
