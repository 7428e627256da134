"""A run on Apache Kafka, faults included, comes out the same to the byte wherever it is read."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from whole_path import whole_path

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.fleet import commands as do
from headrace.infra.provision import apply_topics
from headrace.replay.core.history import Span
from headrace.replay.core.variant import RECORDED, parse_variants
from headrace.replay.runs.variants import Job, measured_in, recorded_settings, run_variants
from headrace.replay.runs.verification import Verification, verify_folder
from headrace.replay.runs.verification_text import as_lines
from headrace.replay.sources.export import Exporter
from headrace.replay.sources.folder import HistoryFolder
from headrace.replay.sources.restore import Restorer
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import SHADOW, TopicSettings
from solver_desk import Desk, Solver


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def exported(kafka: KafkaSettings, topics: TopicSettings, span: Span, folder: Path) -> Path:
    Exporter(kafka, topics, span, folder, lambda _topic, _count: None).export()
    return folder


def verified(folder: Path) -> Verification:
    result = verify_folder(folder, 1, lambda _: None, lambda: False)
    assert result.holds, "\n".join(as_lines(result))
    assert result.proved == result.ticks
    return result


@pytest.mark.slow
@pytest.mark.apache
def test_what_was_recorded_comes_out_the_same_from_kafka_from_files_and_from_another_kafka(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    kafka, topics = apache_broker.kafka, apache_topics
    with whole_path(kafka, topics, tmp_path) as path:
        path.open_to_arrivals()
        shadow = Solver(Desk(kafka, topics), tmp_path / "shadow.log", "solver.period_ms=500", shadow="nearest")
        path.stack.callback(shadow.kill)
        shadow.start()
        path.run_for(1.0)
        begun_ms = now_ms()
        path.simulation.command(do.Slow("engine-b", 3.0))
        path.run_for(2.0)
        path.simulation.command(do.Kill("engine-c"))
        path.run_for(2.0)
        path.run_until("the shadow has looked on", lambda: "version" in shadow.log_tail())
        path.stop_signals()

    span = Span(begun_ms, now_ms())
    folder = exported(kafka, topics, span, tmp_path / "history")
    result = verified(folder)
    assert result.ticks > 10

    elsewhere = fresh_topics()
    apply_topics(kafka, elsewhere)
    counts = Restorer(kafka, elsewhere, lambda _topic, _count: None).restore(folder)
    assert counts == {role: len_of(folder, role) for role in counts}
    assert verified(exported(kafka, elsewhere, span, tmp_path / "again")).ticks == result.ticks

    history = HistoryFolder(folder)
    base = recorded_settings(history)
    assert base is not None
    measured, out = measured_in(history), tmp_path / "out"
    jobs = [Job(folder, v.name, v, base, out, measured) for v in parse_variants((RECORDED, "nearest"), (), base)]
    jobs.append(Job(folder, "shadow", None, base, out, measured, SHADOW))
    same, other, looked_on = run_variants(jobs, 1, lambda _: None, lambda: False)
    assert same.ticks > 10
    assert same.same == same.ticks
    assert other.same < other.ticks
    assert looked_on.ticks > 0

    command = [sys.executable, "-c", "from headrace.infra.cli import main; main()", "replay", "verify", "--json"]
    place = ["--bootstrap", kafka.bootstrap_servers, "--set", f"topics.prefix={topics.prefix}"]
    ends = ["--from", str(span.from_ms), "--to", str(span.to_ms), "--set", f"topics.partitions={topics.partitions}"]
    told = subprocess.run([*command, *place, *ends], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["identical"] == result.ticks


def len_of(folder: Path, role: str) -> int:
    history = HistoryFolder(folder)
    return sum(1 for place in history.places(role) for _ in history.read(place))
