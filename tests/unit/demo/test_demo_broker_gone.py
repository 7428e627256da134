"""A demo whose broker ends in mid-run says so once, and its summary is qualified."""

import time
from pathlib import Path

import pytest

from fleet_inputs import fixed_run, three_regions
from headrace.infra.configuration.config import Config
from headrace.infra.demo.logbook import Logbook
from headrace.infra.demo.session import DemoOptions, Session
from headrace.infra.demo.summary import summary
from headrace.infra.demo.workers import WorkerEndedError, Workers, last_complaint
from headrace.schemas.bus.settings import KafkaSettings

WHY = "the embedded broker ended with status -9:\nthe end of its log"


class EndingBroker:
    """A broker that has ended once `why` is set."""

    why: str | None = None

    def why_ended(self) -> str | None:
        return self.why


class ComplainingPlanes:
    """Data planes that complain at each look, as the clients of a broker that is gone do."""

    def take_installed(self) -> list[object]:
        return []

    def take_problems(self) -> list[str]:
        return ["connection refused"] * 100


class NoStates:
    """A tail that has seen nothing."""

    def take(self) -> list[object]:
        return []


def session_of(tmp_path: Path, broker: EndingBroker) -> Session:
    session = Session(DemoOptions(three_regions(), "embedded", 7, tmp_path), Config())
    session.simulation, _ = fixed_run(1.0, "")
    session.logbook = Logbook(three_regions().names.clusters)
    session.workers = Workers(Config(), KafkaSettings(), tmp_path)
    parts = {"_broker": broker, "planes": ComplainingPlanes(), "_tail": NoStates(), "_zero": time.monotonic()}
    for name, part in parts.items():
        setattr(session, name, part)
    return session


def test_a_broker_that_is_gone_is_one_event_whatever_its_clients_say(tmp_path: Path) -> None:
    broker = EndingBroker()
    broker.why = WHY
    session = session_of(tmp_path, broker)
    for _ in range(3):
        session.step()
    assert [what for _, what in session.logbook.events] == [
        "the broker is gone, the last weights stay: the embedded broker ended with status -9"
    ]
    assert summary(session)["broker_ended"] == "the embedded broker ended with status -9"


def test_while_the_broker_runs_what_its_clients_and_workers_say_is_told(tmp_path: Path) -> None:
    session = session_of(tmp_path, EndingBroker())
    with pytest.raises(WorkerEndedError, match="headrace streams"):  # none was ever started here
        session.step()
    told = [what for _, what in session.logbook.events]
    assert told == [*["data plane: connection refused"] * 100, "`headrace streams` ended with status None"]
    assert summary(session)["broker_ended"] is None
    assert summary(session)["worker_ended"] == "`headrace streams` ended with status None"


def test_of_a_log_the_last_that_is_amiss_is_told_with_its_fields() -> None:
    lines = [
        '{"event": "old", "level": "error", "time": "t"}',
        '{"event": "no weights", "level": "warning", "time": "t", "route": "r", "exception": [{"frames": []}]}',
        '{"event": "solver ready", "level": "info", "time": "t"}',
        "not JSON",
    ]
    assert last_complaint("\n".join(lines)) == "no weights, route r"
    assert last_complaint("\n".join(lines[2:])) is None
    assert last_complaint("headrace: configuration: 1 problem\n  - x") == "configuration: 1 problem"
