"""The simulation as a whole: who is asked, what is counted, what is published."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from fleet_inputs import NEAREST, START_MS, fixed_run, three_regions
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.fleet import commands as do
from headrace.infra.fleet.outcomes import summarise
from headrace.infra.fleet.request import Kind
from headrace.infra.fleet.simulation import Simulation
from headrace.infra.fleet.sink import MemorySink, NullSink
from headrace.infra.fleet.timeline import Timeline
from headrace.schemas.check_signals import check_signal
from headrace.schemas.routed import RoutedOutcome
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK


def test_things_happen_in_the_order_of_their_times_and_never_in_the_past() -> None:
    timeline, seen = Timeline(), list[str]()
    timeline.at(0.5, lambda: seen.append("a"))
    timeline.at(0.2, lambda: seen.append("b"))
    timeline.at(0.5, lambda: seen.append("c"))
    timeline.at(0.6, lambda: seen.append("later"))
    timeline.run_until(0.5)
    assert seen == ["b", "a", "c"]
    assert timeline.now_s == 0.5
    with pytest.raises(ValueError, match=r"at_s is 0\.4"):
        timeline.at(0.4, lambda: None)


def test_clusters_get_the_mean_rates_of_the_scenario() -> None:
    simulation, sink = fixed_run(30.0)
    offered: Counter[str] = Counter()
    for _, record, _ in sink.kept:
        if isinstance(record, Demand):
            offered[record.cluster] += record.offered
    rates = {cluster: count / 30 for cluster, count in offered.items()}
    assert rates == pytest.approx({"cluster-a": 90.0, "cluster-b": 120.0, "cluster-c": 40.0}, rel=0.03)
    assert simulation.tally.arrived == sum(offered.values())


def test_weights_are_followed_and_users_wait_for_the_network_too() -> None:
    simulation, _ = fixed_run(30.0)
    simulation.drain()
    by_engine: Counter[tuple[str, str | None]] = Counter()
    for part, count in simulation.tally.ended.items():
        by_engine[part.cluster, part.engine_id] += count
    b_total = by_engine["cluster-b", "engine-b"] + by_engine["cluster-b", "engine-c"]
    assert by_engine["cluster-b", "engine-c"] / b_total == pytest.approx(0.25, abs=0.03)
    assert by_engine["cluster-a", "engine-a"] == simulation.tally.arrived - b_total - by_engine["cluster-c", "engine-c"]


def test_every_second_each_engine_link_and_route_has_one_sound_record() -> None:
    _, sink = fixed_run(5.0)
    counts: Counter[tuple[str, bytes]] = Counter()
    for role, record, timestamp_ms in sink.kept:
        assert check_signal(record, timestamp_ms) is None
        counts[role, record.key] += 1
    engines = {key: n for (role, key), n in counts.items() if role == SIGNALS_ENGINE}
    links = {key: n for (role, key), n in counts.items() if role == SIGNALS_NETWORK}
    routes = {key: n for (role, key), n in counts.items() if role == SIGNALS_DEMAND}
    assert engines == {b"engine-a": 5, b"engine-b": 5, b"engine-c": 5}
    assert len(links) == 9
    assert set(links.values()) == {5}
    assert len(routes) == 3


def test_engines_publish_at_phases_of_their_own_and_leave_no_gap() -> None:
    _, sink = fixed_run(5.0)
    periods = engine_periods(sink)
    assert len({spans[0][1] for spans in periods.values()}) == 3
    for spans in periods.values():
        assert spans[0][0] == 0
        assert all(later[0] == earlier[1] for earlier, later in pairwise(spans))
        assert all(end - start == 1000 for start, end in spans[1:])


def test_a_dead_engine_is_known_within_a_round_trip_gets_nothing_more_and_is_found_again() -> None:
    simulation, _ = fixed_run(5.0, "t=4 kill engine-b")
    gateway = simulation.gateways["cluster-b"]
    assert gateway.known_down == {"engine-b"}
    assert gateway.router.is_down("engine-b")
    attempts_before = simulation.tally.attempts
    simulation.run_until(8.0)
    assert simulation.tally.attempts > attempts_before
    simulation.command(do.Revive("engine-b"))
    simulation.run_until(9.5)
    assert gateway.known_down == set()
    assert not gateway.router.is_down("engine-b")
    simulation.drain()
    assert simulation.tally.routed_to_known_dead == 0
    assert simulation.tally.open == 0
    assert simulation.tally.by(Kind.FAILED)["BROKEN_OFF"] > 0


def engine_periods(sink: MemorySink) -> dict[str, list[tuple[int, int]]]:
    """Give the periods that each engine published, in ms from the start."""
    periods: dict[str, list[tuple[int, int]]] = {}
    for _, record, _ in sink.kept:
        if isinstance(record, EngineSignals):
            span = (record.period_start_ms - START_MS, record.period_end_ms - START_MS)
            periods.setdefault(record.engine_id, []).append(span)
    return periods


def test_a_dead_engine_and_a_silent_one_publish_nothing_and_a_restarted_one_begins_anew() -> None:
    _, sink = fixed_run(12.0, "t=3 kill engine-a\nt=3 silence engine-c\nt=3 restart engine-b\nt=9 heal engine-c")
    periods = engine_periods(sink)
    assert periods["engine-a"][-1][1] <= 3000
    # Down for 3 s from 3 s on: the first period after that begins when the process did.
    after = [span for span in periods["engine-b"] if span[1] > 3000]
    assert after[0][0] == 6000
    assert 6000 < after[0][1] <= 7000
    # Silent from 3 s to 9 s: what happened meanwhile is not told later.
    later = [span for span in periods["engine-c"] if span[1] > 3000]
    assert 9000 < later[0][1] <= 10000
    assert later[0][1] - later[0][0] == 1000


def test_failed_first_tries_are_retried_elsewhere_only_within_the_budget() -> None:
    weights = {name: {"engine-a": 500_000, "engine-c": 500_000} for name in NEAREST}
    simulation, _ = fixed_run(20.0, "t=0 errors engine-a 1.0", weights=weights)
    simulation.drain()
    tally = simulation.tally
    # Three routes, each with 10 saved and a tenth of its first attempts.
    assert tally.retries <= 30 + 0.1 * tally.arrived
    assert tally.retries > 0.08 * tally.arrived
    assert tally.by(Kind.FAILED)["ENGINE_ERROR"] > 0


def test_a_surge_multiplies_arrivals_and_ends() -> None:
    simulation, sink = fixed_run(30.0, "t=10 surge cluster-c 3\nt=20 surge cluster-c 1")
    per_second: dict[int, int] = {}
    for _, record, _ in sink.kept:
        if isinstance(record, Demand) and record.cluster == "cluster-c":
            per_second[(record.period_start_ms - START_MS) // 1000] = record.offered
    thirds = [sum(per_second[s] for s in range(k, k + 10)) / 10 for k in (0, 10, 20)]
    assert thirds == pytest.approx([40.0, 120.0, 40.0], rel=0.1)
    assert simulation.tally.arrived > 0


def test_without_a_snapshot_every_request_is_refused_with_that_reason() -> None:
    scenario = three_regions()
    routers = {c.name: Router(DataPlaneSettings(), c.name) for c in scenario.clusters}
    simulation = Simulation(scenario, routers, NullSink(), START_MS, np.random.default_rng(1))
    simulation.run_until(2.0)
    assert simulation.tally.arrived == 0
    simulation.start_arrivals()
    simulation.run_until(4.0)
    assert simulation.tally.by(Kind.REFUSED) == {"NO_SNAPSHOT": simulation.tally.arrived}


def test_probes_come_from_the_measured_round_trips() -> None:
    _, sink = fixed_run(30.0)
    b_to_c = [
        record.rtt_s
        for _, record, _ in sink.kept
        if isinstance(record, NetworkProbe) and record.key == b"cluster-b|us-east-2" and record.rtt_s is not None
    ]
    assert float(np.median(b_to_c)) == pytest.approx(0.0151, rel=0.2)


def test_a_drained_sink_numbers_records_by_topic() -> None:
    sink = MemorySink()
    probe = NetworkProbe("c", "s", "p", START_MS, 0.1)
    for _ in range(2):
        sink.put(SIGNALS_NETWORK, probe, START_MS)
    assert [(r.topic, r.offset, r.key) for r in sink.drain()] == [
        (SIGNALS_NETWORK, 0, b"c|s"),
        (SIGNALS_NETWORK, 1, b"c|s"),
    ]
    sink.put(SIGNALS_NETWORK, probe, START_MS)
    assert [r.offset for r in sink.drain()] == [2]


def test_latencies_are_summarised_by_rank() -> None:
    summary = summarise(dict.fromkeys(range(1, 101), 1))
    assert (summary.count, summary.mean_ms) == (100, 50.5)
    assert (summary.p50_ms, summary.p95_ms, summary.p99_ms) == (50.0, 95.0, 99.0)
    assert summarise({}).mean_ms is None


def test_latencies_belong_to_the_phase_in_which_the_request_arrived() -> None:
    simulation, _ = fixed_run(10.0, "t=0 phase calm\nt=5 phase slow\nt=5 slow engine-a 4")
    simulation.drain()
    tally = simulation.tally
    calm, slow = tally.latency("calm"), tally.latency("slow")
    assert calm.count + slow.count == tally.latency().count == sum(tally.by(Kind.ANSWERED).values())
    assert calm.mean_ms is not None
    assert slow.mean_ms is not None
    assert slow.mean_ms > 1.5 * calm.mean_ms
    assert tally.latency("never").count == 0


def test_demand_is_left_to_reporters_of_their_own_where_there_are_any() -> None:
    simulation, sink = fixed_run(0.0)
    simulation.reports_demand = False
    simulation.run_until(3.0)
    assert not any(isinstance(record, Demand) for _, record, _ in sink.kept)
    counted = simulation.gateways["cluster-a"].router.demand.close(START_MS + 3_000)
    assert sum(record.offered for record in counted) == pytest.approx(270, rel=0.2)


def test_a_sample_of_all_sessions_has_every_attempt_with_its_session_and_what_was_waited() -> None:
    simulation, _ = fixed_run(10.0, "t=4s kill engine-b\n", dataplane=DataPlaneSettings(routed_share=1.0))
    simulation.drain()
    samples = [gateway.router.routed for gateway in simulation.gateways.values()]
    found = [each for sample in samples for record in sample.close(simulation.now_ms) for each in record.requests]
    assert len(found) == simulation.tally.attempts
    assert 0 < sum(each.retry for each in found) <= simulation.tally.retries
    assert all(each.session is not None and each.e2e_s is not None for each in found)
    assert len({each.session for each in found}) < len(found) / 2  # a session has five requests, in the mean
    answered = [each.e2e_s or 0.0 for each in found if each.outcome is RoutedOutcome.OK]
    assert len(answered) == sum(simulation.tally.by(Kind.ANSWERED).values())
    waited_ms = simulation.tally.latency("start").mean_ms
    assert 1000.0 * sum(answered) / len(answered) == pytest.approx(waited_ms, rel=0.005)
