"""A simulated engine: slots, queue, faults. The flat engine serves 9 tokens in exactly one second, two at a time."""

import pytest

from fleet_inputs import FLAT, attempt, engine
from headrace.infra.fleet.engine import Admitted, Queued, TurnedAway
from headrace.infra.fleet.request import EngineRefusal
from headrace.schemas.signals import Metric


def admitted(outcome: object) -> Admitted:
    assert isinstance(outcome, Admitted)
    return outcome


def test_an_idle_engine_admits_at_once_and_takes_ttft_and_a_tbot_for_each_token() -> None:
    one = admitted(engine().offer(5.0, attempt(1)))
    assert one.first_token_s == pytest.approx(5.1)
    assert one.finish_s == pytest.approx(6.0)


def test_when_all_slots_are_busy_the_next_waits_for_the_first_end() -> None:
    e = engine()
    first = admitted(e.offer(0.0, attempt(1)))
    admitted(e.offer(0.5, attempt(2)))
    assert e.offer(0.6, attempt(3)) == Queued()
    ended, next_ones = e.finish(first.finish_s, first)
    assert ended
    assert [a.attempt.request.number for a in next_ones] == [3]
    assert next_ones[0].first_token_s == pytest.approx(1.1)


def test_a_queue_is_bounded_and_served_in_order() -> None:
    e = engine()
    first = admitted(e.offer(0.0, attempt(1)))
    e.offer(0.0, attempt(2))
    outcomes = [e.offer(0.0, attempt(n)) for n in range(3, 8)]
    assert outcomes == [Queued()] * 4 + [TurnedAway(EngineRefusal.QUEUE_FULL)]
    _, next_ones = e.finish(1.0, first)
    assert [a.attempt.request.number for a in next_ones] == [3]


def test_nobody_overtakes_those_who_wait() -> None:
    e = engine()
    first = admitted(e.offer(0.0, attempt(1)))
    e.offer(0.0, attempt(2))
    e.offer(0.0, attempt(3))
    e.scale(0.1, 2)
    assert e.offer(1.2, attempt(4)) == Queued()
    assert [a.attempt.request.number for a in e.fill(1.2)] == [3, 4]
    assert e.finish(1.2, first)[0]


def test_a_slow_engine_multiplies_its_latency_and_divides_its_capacity() -> None:
    e = engine()
    e.slow = 3.0
    assert admitted(e.offer(0.0, attempt(1))).finish_s == pytest.approx(3.0)
    assert e.capacity_rps(0.0) == pytest.approx(2.0 / 3)


def test_errors_come_in_the_share_that_was_asked_for() -> None:
    e = engine(replicas=10_000)
    e.error_share = 0.25
    refused = sum(isinstance(e.offer(0.0, attempt(n)), TurnedAway) for n in range(10_000))
    # Binomial: 2500 +- 43; five sigmas.
    assert abs(refused - 2500) < 216


def test_a_dead_engine_refuses_and_what_it_held_is_lost_with_the_word_that_fits() -> None:
    e = engine()
    e.offer(0.0, attempt(1))
    e.offer(0.9, attempt(2))
    e.offer(0.9, attempt(3))
    lost = {one.attempt.request.number: one.reason for one in e.kill(0.95)}
    assert lost == {
        1: EngineRefusal.BROKEN_OFF,
        2: EngineRefusal.CONNECTION_LOST,
        3: EngineRefusal.CONNECTION_LOST,
    }
    assert e.offer(1.0, attempt(4)) == TurnedAway(EngineRefusal.CONNECTION_REFUSED)
    assert e.kill(1.1) == ()


def test_an_end_scheduled_before_the_death_counts_for_nothing() -> None:
    e = engine()
    first = admitted(e.offer(0.0, attempt(1)))
    e.kill(0.5)
    e.revive(0.6)
    e.offer(0.7, attempt(1))
    assert e.finish(first.finish_s, first) == (False, ())
    assert e.running == 1


def test_a_revived_engine_gets_its_replicas_back_one_a_second() -> None:
    e = engine(replicas=3)
    e.kill(10.0)
    assert e.ready(10.0) == 0
    e.revive(20.0)
    e.revive(20.5)
    assert [e.ready(t) for t in (20.0, 20.9, 21.0, 22.0, 60.0)] == [1, 1, 2, 3, 3]


def test_replicas_go_at_once_and_come_by_the_ramp() -> None:
    e = engine(replicas=4)
    e.scale(1.0, 2)
    assert e.ready(1.0) == 2
    e.scale(5.0, 4)
    assert [e.ready(t) for t in (5.0, 6.0, 7.0, 9.0)] == [2, 3, 4, 4]


def test_requests_in_service_outlive_their_replica_and_nobody_takes_their_place() -> None:
    e = engine(replicas=2)
    four = [admitted(e.offer(0.0, attempt(n))) for n in range(4)]
    e.offer(0.0, attempt(9))
    e.scale(0.1, 1)
    assert e.running == 4
    assert e.finish(1.0, four[0]) == (True, ())
    assert e.finish(1.0, four[1]) == (True, ())
    ended, next_ones = e.finish(1.0, four[2])
    assert ended
    assert len(next_ones) == 1


def test_without_any_replica_those_who_wait_are_turned_away() -> None:
    e = engine()
    e.offer(0.0, attempt(1))
    e.offer(0.0, attempt(2))
    e.offer(0.0, attempt(3))
    assert [one.reason for one in e.scale(0.1, 0)] == [EngineRefusal.NO_READY_REPLICA]
    assert e.offer(0.2, attempt(4)) == TurnedAway(EngineRefusal.NO_READY_REPLICA)


def test_healing_ends_slowness_errors_and_silence() -> None:
    e = engine()
    e.slow, e.error_share, e.silent = 2.0, 0.5, True
    e.heal()
    assert (e.slow, e.error_share, e.silent) == (1.0, 0.0, False)


def test_an_engine_observes_a_latency_when_it_comes_to_pass_and_queueing_is_in_ttft() -> None:
    e = engine()
    first = admitted(e.offer(0.0, attempt(1)))
    e.offer(0.0, attempt(2))
    e.offer(0.0, attempt(3))
    early = {d.metric: d.count for d in e.observed.take_until(0.5)}
    assert early == {Metric.TTFT: 2, Metric.QUEUE: 2, Metric.TBOT: 0, Metric.E2E: 0}
    e.finish(1.0, first)
    late = {d.metric: (d.count, d.sum_s) for d in e.observed.take_until(1.5)}
    assert late[Metric.TTFT] == (1, pytest.approx(1.1))
    assert late[Metric.QUEUE] == (1, pytest.approx(1.0))
    assert late[Metric.E2E] == (2, pytest.approx(2.0))
    assert late[Metric.TBOT] == (2, pytest.approx(2 * FLAT.tbot_s[0]))
