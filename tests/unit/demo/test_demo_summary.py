"""The demo's summary: what became of every request, to the last one."""

from pathlib import Path

import orjson
import pytest

from fleet_inputs import NEAREST, START_MS, fixed_run, fixed_snapshot, three_regions
from headrace.infra.configuration.config import Config
from headrace.infra.demo.logbook import Logbook
from headrace.infra.demo.planes import Installed
from headrace.infra.demo.session import DemoOptions, Session
from headrace.infra.demo.state_tail import SeenState
from headrace.infra.demo.summary import moved_words, summary, summary_lines
from headrace.infra.demo.workers import Workers
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.weights import InputOffsets


@pytest.fixture
def finished(tmp_path: Path) -> Session:
    """A session of ten seconds in which engine-b died, without a broker."""
    simulation, _ = fixed_run(10.0, "t=0 phase calm\nt=5 phase dead\nt=5 kill engine-b")
    simulation.drain()
    session = Session(DemoOptions(three_regions(), "embedded", 7, tmp_path), Config())
    session.simulation, session.ran_s = simulation, 10.0
    session.logbook = Logbook(three_regions().names.clusters)
    session.workers = Workers(Config(), KafkaSettings(), tmp_path)
    return session


def test_each_request_is_in_exactly_one_place_and_the_whole_is_json(finished: Session) -> None:
    found = orjson.loads(orjson.dumps(summary(finished)))
    requests = found["requests"]
    unserved = sum(requests["refused"].values()) + sum(requests["failed"].values())
    assert requests["arrived"] == requests["answered"] + unserved
    assert requests["unanswered"] == requests["routed_to_known_dead"] == 0
    assert sum(requests["answered_by_engine"].values()) == requests["answered"]
    assert set(found["latency_ms"]["phases"]) == {"calm", "dead"}
    assert found["startup_s"]["first_routed_request_s"] is None
    assert found["signal_to_weight_ms"] == {"count": 0, "p50": None, "p95": None, "p99": None}


def test_lags_snapshots_and_moved_traffic_come_from_what_was_installed(finished: Session) -> None:
    book, first = finished.logbook, fixed_snapshot({**NEAREST}, 1)
    moved = fixed_snapshot({**NEAREST, "cluster-a": {"engine-c": 1_000_000}}, 2)
    for at_s, snapshot in ((1.0, first), (2.0, moved)):
        inputs = (InputOffsets("state.engine", (int(at_s) * 10,)),)
        commit = type(snapshot.commit)(
            **{name: getattr(snapshot.commit, name) for name in snapshot.commit.__slots__} | {"inputs": inputs}
        )
        book.note_installed(
            at_s, Installed("cluster-a", type(snapshot)(commit, snapshot.routes), START_MS + int(1000 * at_s))
        )
    book.note_states([SeenState("state.engine", 0, 15, START_MS + 1_400)])
    found = summary(finished)
    assert found["signal_to_weight_ms"] == {"count": 1, "p50": 600.0, "p95": 600.0, "p99": 600.0}
    assert found["snapshots"] == {"installed": {"cluster-a": 2}, "statuses": {"OPTIMAL": 2}}
    # A third of the traffic; ten seconds are all start.
    assert found["traffic_moved"] == {
        "start": {"from_s": 0.0, "to_s": 10.0, "span_s": 10.0, "share": pytest.approx(1 / 3, abs=1e-4)},
        "after_start": None,
    }


@pytest.mark.parametrize("ran_s", [40.0, 60.0, 130.0])
def test_moved_traffic_is_told_with_its_span_whatever_the_run_was(finished: Session, ran_s: float) -> None:
    finished.ran_s = ran_s
    away = {**NEAREST, "cluster-a": {"engine-c": 1_000_000}}
    for at_s, version, weights in ((2.0, 1, NEAREST), (5.0, 2, away), (30.0, 3, {**NEAREST})):
        book = finished.logbook
        book.note_installed(at_s, Installed("cluster-a", fixed_snapshot(weights, version), START_MS))
    moved = summary(finished)["traffic_moved"]
    # A third at 5 s, while windows fill, and a third back at 30 s.
    assert moved["start"]["share"] == pytest.approx(1 / 3, abs=1e-4)
    third = pytest.approx(1 / 3, abs=1e-4)
    assert moved["after_start"] == {"from_s": 10.0, "to_s": ran_s, "span_s": ran_s - 10.0, "share": third}
    assert moved_words(moved).startswith(f"33.3% of it in the {ran_s - 10:.0f} s after it had settled")


def test_people_get_the_same_in_a_few_lines(finished: Session) -> None:
    finished.times.first_routed_request_s = 4.2
    text = "\n".join(summary_lines(summary(finished)))
    for words in ("first request routed after 4.2 s", "BROKEN_OFF", "0 without an outcome", "calm: mean"):
        assert words in text
