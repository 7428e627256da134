"""The data plane's two threads on real brokers: weights come in as whole snapshots, demand goes out as measured."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from conftest import fresh_topics
from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import AttemptOutcome, DecisionReason, Router
from headrace.dataplane.demand import DemandCounter
from headrace.dataplane.feed import SnapshotFeed
from headrace.dataplane.reporter import DemandReporter, LatencyReports
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.publisher import Dropped, Published, Publisher
from headrace.schemas.bus.transactions import Committed, TransactionalPublisher
from headrace.schemas.check_signals import check_signal
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, Metric, Vantage
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import Snapshot

DEADLINE_S = 30.0


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer:
    """The solver's part: whole snapshots, each in one transaction."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.topic = topic
        self.publisher = TransactionalPublisher(broker.kafka, f"writer-of-{topic}")
        self.publisher.init()

    def write(self, whole: Snapshot) -> None:
        records = [(self.topic, route.key, encode(route)) for route in whole.routes]
        outcome = self.publisher.publish_all([*records, (self.topic, COMMIT_KEY, encode(whole.commit))])
        assert isinstance(outcome, Committed)


@contextmanager
def following(broker: Broker, topic: str, router: Router) -> Iterator[tuple[SnapshotFeed, list[int], list[str]]]:
    versions: list[int] = []
    said: list[str] = []
    feed = SnapshotFeed(
        broker.kafka, topic, router, lambda s, at_ms: versions.append(s.commit.version if at_ms else 0), said.append
    )
    feed.start()
    try:
        yield feed, versions, said
    finally:
        feed.stop()


def test_a_data_plane_that_starts_late_installs_only_the_newest_and_agrees_with_the_first(
    broker: Broker, topics: TopicSettings
) -> None:
    topic = topic_table(topics)[WEIGHTS].name
    first, late = (Router(DataPlaneSettings(), CLUSTER) for _ in range(2))
    with following(broker, topic, first) as (first_feed, first_saw, _):
        assert first_feed.wait_caught_up(DEADLINE_S)
        assert first.route(MODEL, now_ms=now_ms()).reason is DecisionReason.NO_SNAPSHOT
        writer = Writer(broker, topic)
        for version in (1, 2, 3):
            writer.write(snapshot(route_weights(shares(a=version, b=5 - version), version=version)))
            eventually(lambda: version in first_saw)  # noqa: B023 - called within this turn of the loop
        with following(broker, topic, late) as (late_feed, late_saw, _):
            assert late_feed.wait_caught_up(DEADLINE_S)
            assert late_saw == [3]
    assert first_saw == [1, 2, 3]
    assert first.installation is not None
    assert late.installation is not None
    tables = [made.installation.tables[MODEL, "default"] for made in (first, late)]
    assert tables[0].slots == tables[1].slots
    assert tables[0].by_slot == tables[1].by_slot


def test_a_snapshot_that_cannot_be_proved_is_refused_and_the_last_good_one_stays(
    broker: Broker, topics: TopicSettings
) -> None:
    topic = topic_table(topics)[WEIGHTS].name
    router = Router(DataPlaneSettings(), CLUSTER)
    writer = Writer(broker, topic)
    writer.write(snapshot(route_weights(shares(a=1, b=1), version=1)))
    with following(broker, topic, router) as (feed, saw, said):
        eventually(lambda: saw == [1])
        false = snapshot(route_weights(shares(a=3, b=1), version=2))
        writer.write(replace(false, commit=replace(false.commit, digest="0" * 32)))
        eventually(lambda: feed.counts.refused == 1)
        assert "commit.digest" in said[-1]
        assert router.installation is not None
        assert router.installation.commit.version == 1
        writer.write(snapshot(route_weights(shares(a=1, b=4), version=3)))
        eventually(lambda: saw == [1, 3])


def test_an_exception_in_the_feed_is_counted_and_followed_by_a_new_start(
    broker: Broker, topics: TopicSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_table(topics)[WEIGHTS].name
    router = Router(DataPlaneSettings(), CLUSTER)
    poll, failures = CompactedReader.poll, iter([True, True])

    def failing_twice(reader: CompactedReader, timeout_s: float) -> object:
        if next(failures, False):
            raise RuntimeError("as it happens")
        return poll(reader, timeout_s)

    monkeypatch.setattr(CompactedReader, "poll", failing_twice)
    Writer(broker, topic).write(snapshot(route_weights(shares(a=1, b=1), version=1)))
    with following(broker, topic, router) as (feed, saw, said):
        eventually(lambda: saw == [1])
        assert feed.counts.failures == 2
        assert said.count(f"{topic}: RuntimeError: as it happens") == 2


@pytest.mark.apache
def test_a_data_plane_routes_on_while_the_broker_is_away_and_catches_up_by_itself(apache_broker: Broker) -> None:
    settings = fresh_topics()
    apply_topics(apache_broker.kafka, settings)
    topic = topic_table(settings)[WEIGHTS].name
    router = Router(DataPlaneSettings(), CLUSTER)
    Writer(apache_broker, topic).write(snapshot(route_weights(shares(a=1, b=1), version=1)))
    with following(apache_broker, topic, router) as (feed, saw, _):
        eventually(lambda: saw == [1])
        apache_broker.kill()
        assert router.route(MODEL, now_ms=NOW_MS).reason is DecisionReason.SLOT
        apache_broker.start()
        Writer(apache_broker, topic).write(snapshot(route_weights(shares(a=1, b=4), version=2)))
        eventually(lambda: saw == [1, 2])
        assert feed.counts.failures == 0


def test_demand_is_reported_with_its_zeros_and_rejects(broker: Broker, topics: TopicSettings) -> None:
    topic = topic_table(topics)[SIGNALS_DEMAND].name
    router = Router(DataPlaneSettings(source="gateway-1"), CLUSTER)
    router.apply(snapshot(route_weights(shares(a=1, b=1))))
    reporter = DemandReporter(broker.kafka, topic, router.demand)
    reporter.start()
    for model in (MODEL, MODEL, "unknown-model"):
        at_ms = now_ms()
        decision = router.route(model, now_ms=at_ms)
        router.report(model, "default", decision, now_ms=at_ms)
    time.sleep(2.2)
    reporter.stop()
    assert reporter.counts.delivered == reporter.counts.published > 0
    records = read_demand(broker, topic)
    routed = [r for r in records if r.model == MODEL]
    refused = [r for r in records if r.model == "unknown-model"]
    assert (sum(r.offered for r in routed), sum(r.rejected for r in routed)) == (2, 0)
    assert (sum(r.offered for r in refused), sum(r.rejected for r in refused)) == (1, 1)
    assert routed[-1].offered == 0
    starts = [r.period_start_ms for r in routed]
    assert starts == list(range(starts[0], starts[0] + 1_000 * len(starts), 1_000))


def test_latencies_seen_from_the_gateway_are_signals_of_the_engine(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)
    demand, signals = table[SIGNALS_DEMAND].name, table[SIGNALS_ENGINE].name
    router = Router(DataPlaneSettings(source="gateway-1"), CLUSTER)
    router.apply(snapshot(route_weights({"a": 1_000_000})))
    reporter = DemandReporter(broker.kafka, demand, router.demand, latencies=LatencyReports(signals, router.latencies))
    reporter.start()
    decision = router.route(MODEL, now_ms=now_ms())
    router.begin(MODEL, "default", decision, now_ms=now_ms())
    router.end(MODEL, "default", decision, AttemptOutcome.OK, ttft_s=0.25, tbot_s=0.01, now_ms=now_ms())
    time.sleep(1.2)
    reporter.stop()
    reader = CompactedReader(broker.kafka, (signals,))
    raw = list[RawRecord]()
    while not reader.caught_up:
        raw += reader.poll(0.5)
    reader.close()
    (record,) = [must(decode(EngineSignals, r.value, r.headers)) for r in raw]
    assert (record.engine_id, record.source, record.vantage) == ("a", "gateway-1", Vantage.GATEWAY)
    assert [(d.metric, d.count, d.sum_s) for d in record.distributions] == [
        (Metric.TBOT, 1, 0.01),
        (Metric.TTFT, 1, 0.25),
    ]
    assert check_signal(record, raw[0].timestamp_ms) is None


def test_what_goes_wrong_in_reporting_is_said_and_reporting_goes_on(
    broker: Broker, topics: TopicSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_table(topics)[SIGNALS_DEMAND].name
    publish, troubles = Publisher.publish, iter(["raise", "drop"])

    def troubled(publisher: Publisher, *record: Any) -> Published | Dropped:  # noqa: ANN401 - passed on as it is
        match next(troubles, None):
            case "raise":
                raise RuntimeError("as it happens")
            case "drop":
                return Dropped("QUEUE_FULL", "no room")
            case _:
                return publish(publisher, *record)

    monkeypatch.setattr(Publisher, "publish", troubled)
    said: list[str] = []
    counter = DemandCounter(CLUSTER, "gateway-1", period_ms=100)
    reporter = DemandReporter(broker.kafka, topic, counter, said.append)
    reporter.start()
    counter.count(MODEL, "default", now_ms())
    eventually(lambda: reporter.counts.published >= 2)
    reporter.stop()
    assert said == [f"{topic}: RuntimeError: as it happens", f"{topic}: QUEUE_FULL: no room"]
    assert reporter.counts.delivered == len(read_demand(broker, topic)) >= 2


def read_demand(broker: Broker, topic: str) -> list[Demand]:
    reader = CompactedReader(broker.kafka, (topic,))
    raw = list[RawRecord]()
    while not reader.caught_up:
        raw += reader.poll(0.5)
    reader.close()
    records = [must(decode(Demand, record.value, record.headers)) for record in raw]
    return sorted(records, key=lambda record: record.period_start_ms)
