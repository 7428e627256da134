"""The solver on a real broker: states in by hand, whole snapshots out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.infra.brokers.contract import Broker
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.codec import decode, must
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.signals import Health
from headrace.schemas.topics import DECISIONS, TopicSettings, topic_table
from headrace.schemas.weights import PPM, Reason, Snapshot, SnapshotStatus
from solver_desk import DEMAND, Desk, EarlyReader, Solver, wall_ms, weights_of
from solver_inputs import engine_state, spec


@pytest.fixture
def desk(broker: Broker, topics: TopicSettings) -> Iterator[Desk]:
    made = Desk(broker.kafka, topics)
    yield made
    made.stop()


@pytest.fixture
def reader(desk: Desk) -> Iterator[EarlyReader]:
    made = EarlyReader(desk.kafka, desk.weights)
    yield made
    assert made.refused == []
    made.close()


@pytest.fixture
def solver(desk: Desk, tmp_path: Path) -> Iterator[Solver]:
    made = Solver(desk, tmp_path / "solver.log", "solver.leader_election=false")
    made.start()
    yield made
    made.stop()


def planned(snapshot: Snapshot) -> dict[str, float]:
    return {route.cluster: route.demand_rps for route in snapshot.routes}


def decisions(desk: Desk) -> list[SolveRecord]:
    reader = CompactedReader(desk.kafka, [topic_table(desk.topics)[DECISIONS].name])
    found: list[SolveRecord] = []
    while not reader.caught_up:
        found += [must(decode(SolveRecord, record.value)) for record in reader.poll(0.2)]
    reader.close()
    return found


def test_states_become_a_snapshot_with_its_commit_last_and_its_decision_beside_it(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    solver.until_said("waiting: there are no engines in the fleet yet")
    assert reader.read(0.2) == []
    desk.start()
    snapshot = reader.until(lambda s: planned(s) == DEMAND)
    assert snapshot.commit.status is SnapshotStatus.OPTIMAL
    for route in snapshot.routes:
        assert sum(target.weight_ppm for target in route.targets) == PPM
        assert route.shed_ratio == 0.0
    assert reader.records[-1].key == COMMIT_KEY
    (decision,) = [each for each in decisions(desk) if each.version == snapshot.commit.version]
    assert (decision.demand_rps, decision.shed_rps) == (250.0, 0.0)
    assert decision.inputs == snapshot.commit.inputs
    assert [len(each.offsets) for each in decision.inputs] == [1, 1, 2, 2, 2]
    assert solver.stop() == 0
    assert solver.events()[-1] == "solver stopped"


def test_an_engine_that_says_it_is_unhealthy_loses_its_traffic_with_a_reason(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.start()
    reader.until(lambda s: "e-c" in weights_of(s).get("C", {}))
    desk.silent.add("e-c")
    desk.put(engine_state("e-c", wall_ms() + 1_000, health=Health.UNHEALTHY))
    snapshot = reader.until(lambda s: not any("e-c" in shares for shares in weights_of(s).values()))
    reasons = {excluded.reason for route in snapshot.routes for excluded in route.excluded}
    assert reasons == {Reason.UNHEALTHY}
    # 250 RPS are asked for, 200 are there.
    assert sum(route.shed_ratio * route.demand_rps for route in snapshot.routes) == pytest.approx(50.0)
    assert solver.pid is not None


def test_a_tombstone_in_the_fleet_takes_the_engine_out_of_every_route(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.start()
    reader.until(lambda s: planned(s) == DEMAND)
    desk.put_bytes(spec("e-b"), None)
    snapshot = reader.until(
        lambda s: (
            not any("e-b" in (*[t.engine_id for t in r.targets], *[e.engine_id for e in r.excluded]) for r in s.routes)
        )
    )
    assert {engine for shares in weights_of(snapshot).values() for engine in shares} == {"e-a", "e-c"}
    assert solver.pid is not None


def test_a_route_that_is_gone_is_a_tombstone_and_a_late_reader_equals_an_early_one(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.put(spec("only-n", site="a", models=("n",), capacity_rps_per_replica=10.0))
    desk.start()
    reader.until(lambda s: any(route.model == "n" for route in s.routes))
    desk.put_bytes(spec("only-n"), None)
    reader.until(lambda s: bool(s.routes) and all(route.model == "m" for route in s.routes))
    assert any(record.value is None and record.key == b"A|n|default" for record in reader.records)
    solver.stop()
    late = EarlyReader(desk.kafka, desk.weights)
    reader.read_for(0.5)
    assert late.to_the_end() == reader.snapshots[-1]
    assert late.refused == []
    late.close()


def test_a_tombstone_by_another_hand_is_found_and_a_new_epoch_makes_every_reader_whole(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.start()
    before = reader.until(lambda s: planned(s) == DEMAND)
    stray = Publisher(desk.kafka)
    stray.publish(desk.weights, before.routes[0].key, None)
    stray.flush(5.0)
    healed = reader.until(lambda s: s.commit.epoch > before.commit.epoch)
    assert planned(healed) == DEMAND
    assert "the weights topic holds a record that no solver wrote" in solver.log_tail()
    # Between the two, every commit was refused, and the snapshot before stood.
    assert reader.refused
    reader.refused.clear()
    late = EarlyReader(desk.kafka, desk.weights)
    late.until(lambda s: s.commit.epoch >= healed.commit.epoch)
    late.close()
    stray.close(2.0)
    reader.read_for(2.0)
    assert reader.snapshots[-1].commit.epoch == healed.commit.epoch


def test_when_every_engine_falls_silent_the_weights_are_held_and_stay_valid(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.start()
    before = reader.until(lambda s: planned(s) == DEMAND)
    desk.silent.update({"e-a", "e-b", "e-c"})
    held = reader.until(lambda s: s.commit.status is SnapshotStatus.HELD)
    assert "telemetry lost: none of 3 engines is heard of" in held.commit.sentence
    assert held.commit.valid_until_ms > before.commit.valid_until_ms
    assert all(shares for shares in weights_of(held).values())
    desk.silent.clear()
    reader.until(lambda s: s.commit.status is SnapshotStatus.OPTIMAL)
    assert solver.pid is not None


def test_bytes_that_cannot_be_read_are_named_in_the_log_and_everything_else_goes_on(
    desk: Desk, reader: EarlyReader, solver: Solver
) -> None:
    desk.start()
    reader.until(lambda s: planned(s) == DEMAND)
    desk.put_bytes(spec("e-a"), b"junk")
    desk.put(spec("e-b", capacity_rps_per_replica=-5.0))
    solver.until_said("records of the input topics cannot be used")
    desk.demand["A"] = 70.0
    snapshot = reader.until(lambda s: planned(s)["A"] == 70.0)
    assert {engine for shares in weights_of(snapshot).values() for engine in shares} == {"e-a", "e-b", "e-c"}
