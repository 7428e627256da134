"""The loop, driven by a clock of its own: when it ticks, waits, stands by, loses and takes the pen."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from headrace.infra.metrics import Meter
from headrace.schemas.avro_schemas import AvroSchema, raw_schema
from headrace.schemas.bus.transactions import Committed, Failed, Fenced
from headrace.schemas.codec import SchemaSource, encode_confluent
from headrace.schemas.errors import HeadraceError
from headrace.schemas.metric_table import Counts, NoCounts
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.weights import InputOffsets, Snapshot, SnapshotStatus
from headrace.solver.complaints import Complaints
from headrace.solver.core import decide as decide_module
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.effective import settings_of
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.linear import Failed as LpFailed
from headrace.solver.core.linear import LinearProgram, Method
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp
from headrace.solver.metrics import TABLE
from headrace.solver.pen import NoPen, Pen
from headrace.solver.ports import Ports
from headrace.solver.publish import Unsound
from headrace.solver.settings import SolverSettings
from headrace.solver.worker import FencedError, SolverWorker
from solver_inputs import TOPICS, demand_state, engine_state, network_state, profile, raw, spec
from solver_ticks import tick_of

START_MS = 1_000_120
SETTINGS = SolverSettings(period_ms=500)


def never() -> bool:
    return False


@dataclass
class World:
    """Clock, topics, group, pen and log in one: time passes only while the worker polls."""

    now_ms: int = START_MS
    caught_up: bool = True
    leading: bool = True
    may_come_back: bool = True
    fresh: bool = True
    missing: str | None = None
    stray_after: int | None = None
    queue: list[RawRecord] = field(default_factory=list)
    pens: list[Pen | NoPen | Fenced] = field(default_factory=list)
    asked: list[Sent | None] = field(default_factory=list)
    outcomes: list[Committed | Fenced | Failed | Unsound] = field(default_factory=list)
    written: list[Tick] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    polled_s: list[float] = field(default_factory=list)

    # the input topics
    def poll(self, timeout_s: float) -> list[RawRecord]:
        self.polled_s.append(timeout_s)
        self.now_ms += round(timeout_s * 1000)
        records, self.queue = self.queue, []
        if self.fresh:
            records += [raw(state) for state in heard(self.now_ms)]
        return records

    def positions(self) -> tuple[InputOffsets, ...]:
        return (InputOffsets("t", (1,)),)

    # leadership
    def leads(self) -> bool:
        return self.leading

    def resign(self) -> bool:
        self.leading = False
        return self.may_come_back

    # the pen
    def take_pen(self, stopped: Callable[[], bool], sent: Sent | None = None) -> Pen | NoPen | Fenced:
        assert not stopped()
        self.asked.append(sent)
        return self.pens.pop(0)

    def write(self, tick: Tick) -> Committed | Fenced | Failed | Unsound:
        outcome = self.outcomes.pop(0) if self.outcomes else Committed()
        if isinstance(outcome, Committed):
            self.written.append(tick)
        return outcome

    def close(self) -> None:
        self.closed.append("close")

    def stray(self) -> str | None:
        """Give a stray record once so many snapshots of the pen's epoch are written."""
        return None if self.stray_after is None or len(self.written) < self.stray_after else "a tombstone by hand"

    # the linear solver
    def solve(self, programs: list[LinearProgram], method: Method) -> tuple[LpFailed, ...]:  # noqa: ARG002 - the port's
        return tuple(LpFailed("NOT_ASKED") for _ in programs)

    # the log
    def debug(self, event: str, **_: object) -> None:
        self.said.append(("debug", event))

    def info(self, event: str, **_: object) -> None:
        self.said.append(("info", event))

    def warning(self, event: str, **_: object) -> None:
        self.said.append(("warning", event))

    def error(self, event: str, **_: object) -> None:
        self.said.append(("error", event))

    def events(self, level: str) -> list[str]:
        return [event for at, event in self.said if at == level]


def heard(now_ms: int) -> tuple[Record, ...]:
    return (
        spec("e1"),
        profile(),
        engine_state("e1", now_ms),
        demand_state("A", 10.0, now_ms),
        network_state("A", "site-a", 0.01, now_ms),
    )


def worker_in(world: World, registry: SchemaSource | None = None, counts: Counts | None = None) -> SolverWorker:
    clock_us = lambda: world.now_ms * 1000  # noqa: E731 - the world's clock, in the stop watch's unit
    ports = Ports(
        world, world, world, world, world, lambda: world.now_ms, clock_us, lambda: world.missing, counts or NoCounts()
    )
    return SolverWorker(ports, StateFold(TOPICS, registry), SETTINGS)


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the solve: all of A's traffic on e1."""

    def solve(_p: Problem, previous: Snapshot | None, _s: SolverSettings, _lp: World, at: TickStamp) -> Tick:
        return tick_of({"A|m|default": {"e1": 1_000_000}}, at, previous)

    def hold(_p: Problem, previous: Snapshot, _s: SolverSettings, at: TickStamp, sentence: str) -> Tick:
        return tick_of({"A|m|default": {"e1": 1_000_000}}, at, previous, SnapshotStatus.HELD, sentence)

    monkeypatch.setattr(decide_module, "solve_tick", solve)
    monkeypatch.setattr(decide_module, "hold_tick", hold)


def run(worker: SolverWorker, world: World, until_ms: int) -> None:
    while world.now_ms < until_ms:
        worker.step(never)


def test_ticks_lie_on_whole_periods_and_versions_rise_by_one() -> None:
    world = World(pens=[Pen(3, 41, None)])
    run(worker_in(world), world, START_MS + 2_000)
    commits = [tick.snapshot.commit for tick in world.written]
    assert [commit.tick_ms for commit in commits] == [1_000_000, 1_000_500, 1_001_000, 1_001_500, 1_002_000]
    assert [(commit.epoch, commit.version) for commit in commits] == [(3, v) for v in range(42, 47)]


def test_every_tick_commits_but_only_the_first_writes_the_route_that_stays() -> None:
    world = World(pens=[Pen(1, 0, None)])
    run(worker_in(world), world, START_MS + 1_500)
    assert [len(tick.changed) for tick in world.written] == [1, 0, 0, 0]
    assert world.written[-1].snapshot.commit.valid_until_ms == world.written[-1].snapshot.commit.tick_ms + 60_000


def test_each_tick_is_one_line() -> None:
    world = World(pens=[Pen(1, 0, None)])
    run(worker_in(world), world, START_MS + 1_000)
    assert world.events("info") == [
        "solver ready",
        "version 1: 1 route, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS; optimal by DUAL in 0 ms",
        "version 2: 1 route, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS; optimal by DUAL in 0 ms",
        "version 3: 1 route, 250 RPS planned of 280 RPS capacity, moved 4.1 RPS; optimal by DUAL in 0 ms",
    ]
    assert world.events("debug") == []


def test_what_it_does_is_counted() -> None:
    world = World(pens=[Pen(3, 41, None), Pen(4, 99, None)], outcomes=[Committed(), Committed(), Failed("away")])
    meter = Meter("solver", TABLE)
    worker = worker_in(world, counts=meter)
    run(worker, world, START_MS + 1_000)

    def value(name: str, **labels: str) -> float | None:
        return meter.registry.get_sample_value(f"headrace_solver_{name}", labels)

    assert value("publishes_total", outcome="COMMITTED") == 3
    assert value("publishes_total", outcome="FAILED") == 1
    assert value("ticks_total", status="OPTIMAL", rung="DUAL") == 3
    assert (value("leads"), value("snapshot_epoch"), value("snapshot_version")) == (1, 4, 100)
    assert value("snapshot_timestamp_seconds") == 1_001.0
    assert (value("engines"), value("coverage_least"), value("shed_rps", tier="0")) == (1, 1.0, 0.0)
    assert value("stage_seconds_count", stage="solve") == 3
    world.fresh = False
    world.now_ms += 3_600_000
    run(worker, world, world.now_ms + 1_500)
    assert value("excluded_engines", reason="STALE") == 1
    assert value("stale_inputs", kind="engine") == 1
    assert value("ticks_total", status="HELD", rung="DUAL") == 4
    world.leading = False
    worker.step(never)
    assert (value("leads"), value("stale_inputs", kind="engine"), value("excluded_engines", reason="STALE")) == (
        0,
        0,
        0,
    )
    assert math.isnan(value("engines") or 0.0)


def test_nothing_is_decided_before_every_input_topic_was_read_to_its_end() -> None:
    world = World(caught_up=False, pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 2_000)
    assert (world.written, world.events("info")) == ([], ["reading the input topics to their end"])
    world.caught_up = True
    run(worker, world, START_MS + 3_000)
    assert world.written


def test_it_says_whether_the_broker_or_the_topics_are_missing_or_another_leads_at_once_and_every_ten_seconds() -> None:
    world = World(leading=False, missing="broker 127.0.0.1:9 does not answer")
    worker = worker_in(world)
    worker.step(never)
    assert world.said == [("warning", "broker 127.0.0.1:9 does not answer")]
    run(worker, world, START_MS + 20_500)
    assert world.events("warning") == ["broker 127.0.0.1:9 does not answer"] * 3
    world.missing = None
    run(worker, world, START_MS + 31_000)
    assert world.events("info") == ["standing by: another solver leads, or the group is still forming"]


def test_a_leader_whose_topics_are_missing_says_so_too() -> None:
    world = World(caught_up=False, missing="topics missing: run `headrace topics apply` (fleet)")
    worker_in(world).step(never)
    assert world.events("warning") == ["topics missing: run `headrace topics apply` (fleet)"]


def test_a_record_that_no_solver_wrote_begins_an_epoch_but_not_one_after_the_other() -> None:
    world = World(pens=[Pen(1, 0, None), Pen(2, 9, None), Pen(3, 99, None)], stray_after=2)
    run(worker_in(world), world, START_MS + 12_000)
    epochs = [tick.snapshot.commit.epoch for tick in world.written]
    assert sorted(set(epochs)) == [1, 2, 3]
    assert epochs.count(1) * SETTINGS.period_ms >= 5_000
    assert epochs.count(2) * SETTINGS.period_ms >= 4_500
    assert len(world.events("warning")) == 2


def test_a_tick_that_refuses_everything_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(_p: Problem, previous: Snapshot | None, _s: SolverSettings, _lp: World, at: TickStamp) -> Tick:
        sentence = f"100 % refused: of 1 engines 1 UNHEALTHY; {at.version}.0 RPS asked for; 0.0 RPS moved"
        tick = tick_of({"A|m|default": {"e1": 1_000_000}}, at, previous, SnapshotStatus.OPTIMAL, sentence)
        return replace(tick, record=replace(tick.record, demand_rps=9.0, shed_rps=9.0))

    monkeypatch.setattr(decide_module, "solve_tick", solve)
    world = World(pens=[Pen(1, 0, None)])
    run(worker_in(world), world, START_MS + 3_000)
    assert world.events("warning") == ["100 % refused: of 1 engines 1 UNHEALTHY"]


def test_without_engines_it_says_so_once_and_waits() -> None:
    world = World(fresh=False, pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 3_000)
    assert world.events("info") == ["solver ready", "waiting: there are no engines in the fleet yet"]
    world.fresh = True
    run(worker, world, START_MS + 4_000)
    assert world.written[0].snapshot.commit.version == 1


def test_periods_that_were_missed_are_skipped() -> None:
    world = World(pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 500)
    world.now_ms = 1_008_100
    run(worker, world, 1_008_600)
    ticks = [tick.snapshot.commit.tick_ms for tick in world.written]
    assert ticks == [1_000_000, 1_000_500, 1_008_000, 1_008_500]


def test_a_worker_that_does_not_lead_reads_on_and_writes_nothing() -> None:
    world = World(leading=False, pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 2_000)
    assert world.written == []
    assert world.events("info") == ["standing by: another solver leads, or the group is still forming"]
    world.leading = True
    run(worker, world, world.now_ms + 1)
    assert len(world.written) == 1


def test_losing_the_lead_costs_the_pen_and_the_next_one_is_a_new_epoch() -> None:
    world = World(pens=[Pen(1, 0, None), Pen(3, 9, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 500)
    world.leading = False
    run(worker, world, START_MS + 1_500)
    world.leading = True
    run(worker, world, START_MS + 2_000)
    epochs = [(tick.snapshot.commit.epoch, tick.snapshot.commit.version) for tick in world.written]
    assert epochs[-1][0] == 3
    assert (3, 10) in epochs
    assert world.closed == ["close"]


def test_a_fenced_worker_says_so_and_stands_by() -> None:
    world = World(pens=[Pen(1, 0, None)], outcomes=[Committed(), Fenced("by a younger one")])
    worker = worker_in(world)
    run(worker, world, START_MS + 2_000)
    assert len(world.written) == 1
    assert world.events("warning") == ["fenced: another solver took the pen"]
    assert world.events("info")[-1] == "standing by: another solver leads, or the group is still forming"


def test_a_fenced_worker_without_leader_election_ends() -> None:
    world = World(may_come_back=False, pens=[Pen(1, 0, None)], outcomes=[Fenced("by a younger one")])
    with pytest.raises(FencedError, match="leader_election is off"):
        worker_in(world).run(never)
    assert world.closed[-3:] == ["close"] * 3


TIMED_OUT = Failed("commit timed out", in_doubt=True, needs_init=True)
OVERTAKEN = Fenced("epoch 2 is the last in the topic")


def test_a_worker_that_was_overtaken_while_its_write_timed_out_ends_and_takes_the_pen_from_nobody() -> None:
    world = World(may_come_back=False, pens=[Pen(1, 40, None), OVERTAKEN], outcomes=[Committed(), TIMED_OUT])
    with pytest.raises(FencedError, match="leader_election is off"):
        worker_in(world).run(never)
    assert world.asked == [None, Sent(1, 42)]
    assert world.events("warning") == ["fenced: another solver took the pen"]


def test_a_worker_that_may_have_been_overtaken_asks_so_each_time_until_it_holds_the_pen() -> None:
    away = NoPen("the broker is away")
    world = World(
        pens=[Pen(1, 0, None), away, away, Pen(2, 7, None), Pen(3, 8, None)],
        outcomes=[TIMED_OUT, Unsound(("digest",))],
    )
    run(worker_in(world), world, START_MS + 3_000)
    assert world.asked == [None, Sent(1, 1), Sent(1, 1), Sent(1, 1), Sent(2, 8)]
    assert world.written[0].snapshot.commit.epoch == 3


def test_a_worker_that_finds_a_record_by_another_hand_asks_whether_it_was_overtaken() -> None:
    world = World(pens=[Pen(1, 0, None), OVERTAKEN], stray_after=1)
    run(worker_in(world), world, START_MS + 8_000)
    assert world.asked == [None, Sent(1, len(world.written))]
    assert world.events("warning")[-1] == "fenced: another solver took the pen"
    assert {tick.snapshot.commit.epoch for tick in world.written} == {1}


def test_an_overtaken_worker_stands_by_and_made_leader_anew_it_may_take_the_pen_from_anybody() -> None:
    world = World(pens=[Pen(1, 0, None), OVERTAKEN, Pen(3, 9, None)], outcomes=[TIMED_OUT])
    worker = worker_in(world)
    run(worker, world, START_MS + 2_000)
    assert world.events("info")[-1] == "standing by: another solver leads, or the group is still forming"
    world.leading = True
    run(worker, world, START_MS + 3_000)
    assert world.asked == [None, Sent(1, 1), None]
    assert {tick.snapshot.commit.epoch for tick in world.written} == {3}


def test_a_worker_whose_write_failed_and_who_is_made_leader_anew_may_take_the_pen_from_anybody() -> None:
    world = World(pens=[Pen(1, 0, None), NoPen("the broker is away"), Pen(3, 9, None)], outcomes=[TIMED_OUT])
    worker = worker_in(world)
    while len(world.asked) < 2:
        worker.step(never)
    world.leading = False
    worker.step(never)
    world.leading = True
    run(worker, world, START_MS + 3_000)
    assert world.asked == [None, Sent(1, 1), None]


def test_a_write_that_failed_is_made_good_in_the_next_epoch() -> None:
    world = World(
        pens=[Pen(1, 0, None), NoPen("the broker is away"), NoPen("the broker is away"), Pen(2, 1, None)],
        outcomes=[Committed(), Failed("timed out", in_doubt=True, needs_init=True)],
    )
    run(worker_in(world), world, START_MS + 3_000)
    epochs = [tick.snapshot.commit.epoch for tick in world.written]
    assert epochs[0] == 1
    assert set(epochs[1:]) == {2}
    assert len(world.written[1].changed) == 1
    assert world.events("info").count("the pen cannot be taken yet") == 1


def test_a_snapshot_that_readers_would_refuse_is_an_error_and_costs_the_pen() -> None:
    world = World(pens=[Pen(1, 0, None), Pen(2, 0, None)], outcomes=[Unsound(("digest",))])
    run(worker_in(world), world, START_MS + 1_000)
    assert world.events("error") == ["readers would refuse the snapshot; it was not sent"]
    assert world.written[0].snapshot.commit.epoch == 2


def test_lost_telemetry_is_a_warning_once_and_validity_goes_on() -> None:
    world = World(pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 500)
    world.fresh = False
    run(worker, world, START_MS + 33_000)
    held = [tick for tick in world.written if tick.snapshot.commit.status is SnapshotStatus.HELD]
    assert len(held) > 1
    assert [event.partition(", held")[0].partition(":")[0] for event in world.events("warning")] == [
        f"version {held[0].snapshot.commit.version}"
    ]
    assert world.written[-1].snapshot.commit.valid_until_ms > world.now_ms + 59_000


def test_records_that_cannot_be_used_are_told_once_a_poll() -> None:
    world = World(pens=[Pen(1, 0, None)])
    world.queue = [replace(raw(spec("e1")), value=b"junk"), replace(raw(spec("e2")), value=b"junk")]
    run(worker_in(world), world, START_MS + 1_000)
    assert world.events("warning") == ["records of the input topics cannot be used; the ones before them stand"]
    assert world.written


class MoodyRegistry:
    """A schema registry that is away at first."""

    away = True

    def by_id(self, schema_id: int) -> AvroSchema | None:
        assert schema_id == 5
        if self.away:
            raise HeadraceError("the registry is away")
        return raw_schema("EngineSpec")

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        raise AssertionError(guid)


def test_a_record_that_waits_for_the_registry_is_not_lost() -> None:
    registry, world = MoodyRegistry(), World(fresh=False, pens=[Pen(1, 0, None)])
    others = [raw(record) for record in heard(START_MS)[1:]]
    world.queue = [replace(raw(spec("e1")), value=encode_confluent(spec("e1"), 5)), *others]
    worker = worker_in(world, registry)
    worker.step(never)
    worker.step(never)
    assert world.events("info") == ["an input record cannot be judged yet", "reading the input topics to their end"] * 2
    registry.away = False
    worker.step(never)
    assert [route.cluster for route in world.written[0].snapshot.routes] == ["A"]


def test_a_solve_that_raised_is_an_error_in_the_log_and_the_weights_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    run(worker, world, START_MS + 500)

    def broken(*_: object) -> Tick:
        raise ZeroDivisionError

    monkeypatch.setattr(decide_module, "solve_tick", broken)
    run(worker, world, START_MS + 1_000)
    assert world.events("error") == ["the solve raised"]
    assert world.written[-1].snapshot.commit.status is SnapshotStatus.HELD


def test_the_time_a_publish_took_is_in_the_next_record() -> None:
    class Slow(World):
        def write(self, tick: Tick) -> Committed | Fenced | Failed | Unsound:
            self.now_ms += 3
            return super().write(tick)

    world = Slow(pens=[Pen(1, 0, None)])
    run(worker_in(world), world, START_MS + 1_000)
    assert [tick.record.publish_us for tick in world.written] == [0, 3_000, 3_000]


def test_it_never_waits_past_the_next_tick_nor_longer_than_a_stop_may_take() -> None:
    world = World(pens=[Pen(1, 0, None)])
    run(worker_in(world), world, START_MS + 2_000)
    assert max(world.polled_s) == 0.2
    assert all(0 <= waited <= 0.2 for waited in world.polled_s)


def test_told_to_stop_it_lets_everything_go() -> None:
    world = World(pens=[Pen(1, 0, None)])
    worker_in(world).run(lambda: bool(world.written))
    assert world.closed == ["close"] * 3
    assert world.events("info")[-1] == "solver stopped"


def test_complaints_of_the_client_are_told_every_ten_seconds_with_the_number_held_back() -> None:
    told: list[tuple[str, int]] = []
    now = {"ms": 0}
    complaints = Complaints(lambda sentence, held_back: told.append((sentence, held_back)), lambda: now["ms"])
    for second in range(21):
        now["ms"] = second * 1_000
        complaints.add(f"refused at {second} s")
    assert told == [("refused at 0 s", 0), ("refused at 10 s", 9), ("refused at 20 s", 9)]


def test_every_record_says_what_was_read_and_a_keyframe_says_the_settings_too() -> None:
    world = World(pens=[Pen(1, 0, None)])
    worker = worker_in(world)
    worker._settings = replace(SETTINGS, keyframe_ms=1_000)
    run(worker, world, START_MS + 2_000)
    records = [tick.record for tick in world.written]
    assert [record.tick_ms for record in records if record.settings is not None] == [1_000_000, 1_001_000, 1_002_000]
    assert all(settings_of(record.settings) == worker._settings for record in records if record.settings is not None)
    assert all(record.input_digests == () for record in records)  # of the inputs that the commit names: none, by hand


def test_a_snapshot_names_no_offset_of_a_record_that_still_waits_to_be_judged() -> None:
    world = World()
    worker = worker_in(world, MoodyRegistry())
    waits = replace(raw(spec("e1")), topic="t")
    worker._unread = [waits, replace(waits, offset=1), replace(waits, partition=1)]
    assert worker._folded() == (InputOffsets("t", (0,)),)
