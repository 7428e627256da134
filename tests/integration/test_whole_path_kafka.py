"""The issue's sentence, as a test: from an engine's signal to a routed request, on both brokers."""

from pathlib import Path

import pytest
from whole_path import WholePath, slots, whole_path

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.fleet import commands as do
from headrace.infra.fleet.outcomes import Tally
from headrace.infra.fleet.request import Kind
from headrace.infra.provision import apply_topics
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.codec import decode, must
from headrace.schemas.routed import RoutedRequests
from headrace.schemas.topics import FLEET, ROUTED, STATE_ENGINE, TopicSettings
from headrace.streams.settings import StreamsSettings
from solver_desk import weights_of


def every_request_has_one_outcome(tally: Tally) -> bool:
    return tally.open == 0 and tally.arrived == sum(tally.ended.values())


def without_engine(path: WholePath, engine_id: str) -> bool:
    routes = path.snapshot.routes
    return bool(routes) and all(engine_id not in {t.engine_id for t in route.targets} for route in routes)


def newest_state(path: WholePath, key: bytes) -> bytes | None:
    newest: bytes | None = b""
    for record in path.bus.read([STATE_ENGINE]):
        if record.key == key:
            newest = record.value
    return newest


@pytest.mark.slow
def test_a_signal_becomes_a_weight_and_every_request_is_answered_or_refused_with_a_reason(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    with whole_path(broker.kafka, topics, tmp_path) as path:
        path.open_to_arrivals()
        path.run_until("B spills to C", lambda: "engine-c" in weights_of(path.snapshot).get("cluster-b", {}))
        path.run_for(3.0)

        # A data plane that starts late comes to the tables of the one that started first, slot for slot.
        late = path.start_planes()
        path.run_until(
            "both data planes have installed the same snapshot and agree on every slot",
            lambda: slots(late) == slots(path.planes) and len(slots(late)) == 3,
        )

        # An operator takes an engine away: a tombstone on `fleet` removes its state and its weights.
        path.publisher.publish(path.table[FLEET].name, b"engine-c", None)
        path.run_until("engine-c is in no route", lambda: without_engine(path, "engine-c"))
        path.run_for(1.0)
        path.stop_signals()

        offline = path.bus.offline(StreamsSettings(), {"engine-a", "engine-b"})
        path.bus.wait_for_states(offline.encoded, path.worker)
        assert newest_state(path, b"engine-c") is None
        assert len(offline.encoded) == 2 + 3 + 9  # engines; a demand per cluster; a link per cluster and site
        assert path.reader.refused == []
        assert all(check_snapshot(snapshot) == () for snapshot in path.reader.snapshots)
        assert every_request_has_one_outcome(path.simulation.tally)
        sampled = [must(decode(RoutedRequests, record.value)) for record in path.bus.read([ROUTED])]
        assert {record.cluster for record in sampled} == {"cluster-a", "cluster-b", "cluster-c"}
        assert path.solver.stop() == 0
        assert path.worker.stop() == 0


@pytest.mark.slow
@pytest.mark.apache
def test_kill_nine_of_streams_solver_and_broker_in_mid_run_changes_no_state_and_tears_no_snapshot(
    apache_broker: Broker, tmp_path: Path
) -> None:
    topics = fresh_topics()
    apply_topics(apache_broker.kafka, topics)
    with whole_path(apache_broker.kafka, topics, tmp_path) as path:
        path.open_to_arrivals()
        path.run_for(3.0)

        path.worker.kill()
        path.run_for(1.5)
        path.worker = path.start_worker()
        path.run_for(3.0)

        epoch = path.snapshot.commit.epoch
        path.solver.kill()
        path.solver = path.start_solver("solver-2.log")
        path.run_until("a new solver leads", lambda: path.snapshot.commit.epoch > epoch)
        path.run_for(2.0)

        version = path.snapshot.commit.version
        apache_broker.kill()
        path.run_for(2.0)
        apache_broker.restart()
        path.run_until("snapshots go on after the broker's return", lambda: path.snapshot.commit.version > version + 5)
        path.simulation.command(do.Kill("engine-b"))
        path.run_for(2.0)
        path.stop_signals()

        path.bus.wait_for_states(path.bus.offline(StreamsSettings()).encoded, path.worker, timeout_s=90.0)
        assert path.reader.refused == []
        writers = [(snapshot.commit.epoch, snapshot.commit.version) for snapshot in path.reader.snapshots]
        assert writers == sorted(set(writers))
        assert every_request_has_one_outcome(path.simulation.tally)
        assert path.simulation.tally.by(Kind.ANSWERED)
