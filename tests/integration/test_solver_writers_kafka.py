"""More than one writer, and writers that die: one epoch has one writer, and no reader ever sees half a snapshot."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.transactions import Committed, Fenced
from headrace.schemas.topics import TopicSettings, topic_table
from headrace.schemas.weights import Snapshot
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.tick import Tick
from headrace.solver.pen import Pen
from headrace.solver.ports import Writer
from headrace.solver.publish import SnapshotWriter
from headrace.solver.shadow import ShadowWriter
from solver_desk import DEMAND, WAIT_S, Desk, EarlyReader, Solver, until, wall_ms
from solver_ticks import Shares, stamp, tick_of

APACHE_ALONE = pytest.mark.parametrize("broker", [pytest.param("apache", marks=pytest.mark.apache)], indirect=True)
"""For groups that change while they form: the embedded broker can lose their leader for ever."""
ALONE = "solver.leader_election=false"


@pytest.fixture
def desk(broker: Broker, topics: TopicSettings) -> Iterator[Desk]:
    made = Desk(broker.kafka, topics)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def reader(desk: Desk) -> Iterator[EarlyReader]:
    made = EarlyReader(desk.kafka, desk.weights)
    yield made
    made.close()


@pytest.fixture
def solvers(desk: Desk, tmp_path: Path) -> Iterator[tuple[Solver, Solver]]:
    yield from pair(desk, tmp_path)


def pair(desk: Desk, tmp_path: Path, *settings: str) -> Iterator[tuple[Solver, Solver]]:
    made = (Solver(desk, tmp_path / "one.log", *settings), Solver(desk, tmp_path / "two.log", *settings))
    yield made
    for solver in made:
        if solver.pid is not None:
            os.kill(solver.pid, signal.SIGCONT)
        solver.stop()


@pytest.fixture
def rivals(desk: Desk, tmp_path: Path) -> Iterator[tuple[Solver, Solver]]:
    """Two that know nothing of each other, since leader election is off."""
    yield from pair(desk, tmp_path, ALONE, "solver.period_ms=50")


def is_whole(snapshot: Snapshot) -> bool:
    return {route.cluster: route.demand_rps for route in snapshot.routes} == DEMAND


def assert_one_writer_at_a_time(reader: EarlyReader) -> None:
    """Nothing was refused, epochs never fall, versions always rise, and each epoch begins with every route."""
    assert reader.refused == []
    commits = [snapshot.commit for snapshot in reader.snapshots]
    assert all(a.epoch <= b.epoch and a.version < b.version for a, b in pairwise(commits))
    for before, after in pairwise(reader.snapshots):
        if before.commit.epoch != after.commit.epoch:
            assert {route.epoch for route in after.routes} == {after.commit.epoch}
    late = EarlyReader(reader.kafka, reader.topic)
    late.to_the_end()
    reader.read_for(0.5)
    late.read_for(0.5)
    assert late.snapshots[-1].routes == reader.snapshots[-1].routes
    late.close()


def test_killed_at_any_time_the_next_goes_on_in_a_higher_epoch(desk: Desk, reader: EarlyReader, tmp_path: Path) -> None:
    epochs: list[int] = []
    for life in range(4):
        solver = Solver(desk, tmp_path / f"life-{life}.log", ALONE, "solver.period_ms=50")
        solver.start()
        epochs.append(reader.until(lambda s: is_whole(s) and s.commit.epoch not in epochs).commit.epoch)
        reader.read_for(0.137 * (life + 1))
        solver.kill()
    assert epochs == sorted(set(epochs))
    assert_one_writer_at_a_time(reader)


def test_without_election_a_second_worker_fences_the_first_which_says_so_and_ends_with_status_1(
    reader: EarlyReader, rivals: tuple[Solver, Solver]
) -> None:
    first, second = rivals
    first.start()
    epoch = reader.until(is_whole).commit.epoch
    second.start()
    reader.until(lambda s: s.commit.epoch > epoch)
    first.until_said("fenced: another solver took the pen")
    until(lambda: first.pid is None, WAIT_S, first.log_tail)
    assert first.exit_status == 1
    assert "solver.leader_election is off" in first.log_tail()
    reader.read_for(1.0)
    assert second.pid is not None
    second.stop()
    assert_one_writer_at_a_time(reader)


def test_without_election_one_that_wakes_from_a_long_sleep_ends_and_leaves_the_pen_to_the_one_that_writes(
    reader: EarlyReader, rivals: tuple[Solver, Solver]
) -> None:
    first, second = rivals
    first.start()
    epoch = reader.until(is_whole).commit.epoch
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSTOP)
    second.start()
    taken = reader.until(lambda s: s.commit.epoch > epoch).commit.epoch
    os.kill(first.pid, signal.SIGCONT)
    first.until_said("fenced: another solver took the pen")
    until(lambda: first.pid is None, WAIT_S, first.log_tail)
    assert first.exit_status == 1
    written = len(reader.snapshots)
    reader.until(lambda _: len(reader.snapshots) > written + 5)
    assert reader.snapshots[-1].commit.epoch == taken
    assert second.pid is not None
    second.stop()
    assert_one_writer_at_a_time(reader)


@pytest.mark.parametrize("kind", [SnapshotWriter, ShadowWriter])
def test_a_writer_that_lost_the_pen_by_a_failure_leaves_it_to_a_younger_one_that_has_written(
    broker: Broker, topics: TopicSettings, kind: type[SnapshotWriter | ShadowWriter]
) -> None:
    table = topic_table(topics)
    older, younger = kind(broker.kafka, table, wall_ms), kind(broker.kafka, table, lambda: wall_ms() + 60_000)
    begun = write_once(older)
    again = write_once(older, Sent(*begun))
    assert again >= begun
    pen = younger.take_pen(lambda: False)
    assert isinstance(pen, Pen)
    assert younger.write(tick_after(pen)) == Committed()
    assert isinstance(older.take_pen(lambda: False, Sent(*again)), Fenced)
    second = tick_of(SHARES, stamp(pen.epoch, pen.version + 2), tick_after(pen).snapshot)
    assert younger.write(second) == Committed()
    older.close()
    younger.close()


SHARES: Shares = {"A|m|default": {"e1": 1_000_000}}


def tick_after(pen: Pen) -> Tick:
    return tick_of(SHARES, stamp(pen.epoch, pen.version + 1))


def write_once(writer: Writer, sent: Sent | None = None) -> tuple[int, int]:
    """Take the pen, write one snapshot, and lose the pen as by a failure; gives the epoch and the version."""
    pen = writer.take_pen(lambda: False, sent)
    assert isinstance(pen, Pen)
    assert writer.write(tick_after(pen)) == Committed()
    writer.close()
    return pen.epoch, pen.version + 1


@APACHE_ALONE
def test_a_second_worker_stands_by_and_takes_over_when_the_first_stops(
    reader: EarlyReader, solvers: tuple[Solver, Solver]
) -> None:
    first, second = solvers
    first.start()
    epoch = reader.until(is_whole).commit.epoch
    second.start()
    second.until_said("standing by")
    reader.read_for(2.0)
    assert reader.snapshots[-1].commit.epoch == epoch
    assert first.stop() == 0
    reader.until(lambda s: s.commit.epoch > epoch)
    assert "solver ready" in second.events()
    assert_one_writer_at_a_time(reader)


@pytest.mark.slow
def test_a_second_worker_takes_over_when_the_first_is_killed(
    reader: EarlyReader, solvers: tuple[Solver, Solver]
) -> None:
    first, second = solvers
    first.start()
    epoch = reader.until(is_whole).commit.epoch
    second.start()
    second.until_said("standing by")
    first.kill()
    reader.until(lambda s: s.commit.epoch > epoch)
    assert_one_writer_at_a_time(reader)


@APACHE_ALONE
@pytest.mark.slow
def test_a_leader_that_wakes_from_a_long_sleep_writes_nothing_and_stands_by(
    reader: EarlyReader, solvers: tuple[Solver, Solver]
) -> None:
    first, second = solvers
    first.start()
    epoch = reader.until(is_whole).commit.epoch
    second.start()
    second.until_said("standing by")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSTOP)
    taken = reader.until(lambda s: s.commit.epoch > epoch).commit.epoch
    stood_by = sum(event.startswith("standing by") for event in first.events())
    os.kill(first.pid, signal.SIGCONT)
    first.until_said("standing by", times=stood_by + 1)
    reader.read_for(2.0)
    assert reader.snapshots[-1].commit.epoch == taken
    assert first.pid is not None
    assert_one_writer_at_a_time(reader)


@pytest.mark.apache
@pytest.mark.slow
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_with_the_broker_gone_the_worker_keeps_trying_and_goes_on_by_itself(
    apache_broker: Broker, tmp_path: Path, how: str
) -> None:
    topics = fresh_topics()
    apply_topics(apache_broker.kafka, topics)
    desk = Desk(apache_broker.kafka, topics)
    reader = EarlyReader(desk.kafka, desk.weights)
    solver = Solver(desk, tmp_path / "solver.log")
    try:
        desk.start()
        solver.start()
        version = reader.until(is_whole).commit.version
        pid = solver.pid
        if how == "kill":
            apache_broker.kill()
        apache_broker.restart()
        back_ms = time.time_ns() // 1_000_000
        after = reader.until(lambda s: s.commit.tick_ms > back_ms and is_whole(s), timeout_s=60.0)
        assert after.commit.version > version
        assert solver.pid == pid
    finally:
        solver.stop()
        desk.stop()
    assert_one_writer_at_a_time(reader)
    reader.close()
