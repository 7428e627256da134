"""State to problem: who is out and why, how capacity fades with silence, and which rows there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.ids import RouteKey
from headrace.schemas.records import Record
from headrace.schemas.signals import Health
from headrace.schemas.state import Invalid
from headrace.schemas.weights import InputOffsets, Reason
from headrace.solver.core.inputs.assemble import assemble, lost_profiles, lost_telemetry
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.core.problem import Engine, Problem
from headrace.solver.settings import ClassSettings, SolverSettings
from solver_inputs import NOW_MS, TOPICS, demand_state, engine_state, network_state, profile, raw, spec

VOICE = engine_state("voice")
"""An engine that speaks at the tick's own time: the silence of others is counted against it."""
SETTINGS = SolverSettings(ageing_after_ms=5_000, expired_after_ms=15_000, degraded_factor=0.5)


def problem_of(*records: Record, settings: SolverSettings = SETTINGS) -> Problem:
    fold = StateFold(TOPICS)
    for record in records:
        assert fold.offer(raw(record)) is None
    return assemble(fold.view(), settings, NOW_MS)


def engine_of(*records: Record) -> Engine:
    (engine,) = problem_of(*records).engines
    return engine


def test_a_fresh_engine_has_the_capacity_of_its_ready_replicas() -> None:
    engine = engine_of(spec("e1"), profile(), engine_state("e1", replicas_ready=3))
    assert engine.exclusion is None
    assert engine.capacity_rps == 300.0
    assert engine.factor_sentence == ""


def test_without_a_stated_capacity_a_replica_can_do_what_its_profile_measured() -> None:
    engine = engine_of(spec("e1", capacity_rps_per_replica=None), profile(capacity_rps=50.0), engine_state("e1"))
    assert engine.capacity_rps == 50.0


EXCLUDED = {
    Reason.DRAINED: (spec("e1", drain=True), profile(), engine_state("e1")),
    Reason.NO_PROFILE: (
        spec("e1", profile_id="unknown", capacity_rps_per_replica=None),
        profile(),
        engine_state("e1"),
    ),
    Reason.NO_STATE: (spec("e1"), profile()),
    Reason.STALE: (spec("e1"), profile(), engine_state("e1", NOW_MS - 15_000), VOICE),
    Reason.INVALID_STATE: (spec("e1"), profile(), engine_state("e1", invalid=Invalid.LOW_COVERAGE, coverage=0.2)),
    Reason.UNHEALTHY: (spec("e1"), profile(), engine_state("e1", health=Health.UNHEALTHY)),
    Reason.NO_READY_REPLICA: (spec("e1"), profile(), engine_state("e1", replicas_ready=0)),
}


@pytest.mark.parametrize("reason", EXCLUDED)
def test_an_engine_is_out_for_this_reason_and_a_sentence_says_so(reason: Reason) -> None:
    engine = engine_of(*EXCLUDED[reason])
    assert engine.exclusion is not None
    assert engine.exclusion.reason is reason
    assert engine.exclusion.sentence
    assert engine.capacity_rps == 0.0


def test_a_state_before_any_signal_is_no_state() -> None:
    engine = engine_of(spec("e1"), profile(), engine_state("e1", invalid=Invalid.NO_SIGNAL_YET))
    assert engine.exclusion is not None
    assert engine.exclusion.reason is Reason.NO_STATE


def test_the_operators_word_comes_before_what_the_engine_says() -> None:
    engine = engine_of(spec("e1", drain=True), profile(), engine_state("e1", 0, health=Health.UNHEALTHY))
    assert engine.exclusion is not None
    assert engine.exclusion.reason is Reason.DRAINED


@pytest.mark.parametrize(
    ("silence_ms", "factor"),
    [(-2_000, 1.0), (0, 1.0), (5_000, 1.0), (7_500, 0.75), (10_000, 0.5), (14_999, 0.0001)],
)
def test_usable_capacity_fades_in_a_straight_line_from_ageing_to_expired(silence_ms: int, factor: float) -> None:
    engine = engine_of(spec("e1"), profile(), engine_state("e1", NOW_MS - silence_ms), VOICE)
    assert engine.exclusion is None
    assert engine.factor == pytest.approx(factor)
    assert (engine.factor_sentence == "") == (factor == 1.0)


def test_where_ageing_and_expiry_are_one_there_is_a_cliff_and_no_division_by_zero() -> None:
    settings = SolverSettings(ageing_after_ms=15_000, expired_after_ms=15_000)
    (before,) = problem_of(spec("e1"), profile(), engine_state("e1", NOW_MS - 14_999), VOICE, settings=settings).engines
    (after,) = problem_of(spec("e1"), profile(), engine_state("e1", NOW_MS - 15_001), VOICE, settings=settings).engines
    assert (before.capacity_rps, after.capacity_rps) == (100.0, 0.0)


def test_a_degraded_and_ageing_engine_pays_for_both() -> None:
    engine = engine_of(spec("e1"), profile(), engine_state("e1", NOW_MS - 10_000, health=Health.DEGRADED), VOICE)
    assert engine.capacity_rps == 25.0
    assert engine.factor_sentence == "degraded: 50 % of capacity; silent for 10.0 s: 50 % of capacity"


def test_unknown_health_costs_nothing() -> None:
    assert engine_of(spec("e1"), profile(), engine_state("e1", health=Health.UNKNOWN)).capacity_rps == 100.0


def test_replicas_that_were_not_measured_are_filled_by_a_named_rule() -> None:
    reporting = engine_of(spec("e1"), profile(), engine_state("e1", replicas_ready=None, replicas_reporting=2))
    assumed = engine_of(spec("e1"), profile(), engine_state("e1", replicas_ready=None, replicas_reporting=None))
    assert (reporting.ready_replicas, assumed.ready_replicas) == (2, 1)
    assert reporting.factor_sentence == "ready replicas not measured: those reporting are counted"
    assert assumed.factor_sentence == "ready replicas not measured: 1 is assumed"


def test_rows_have_the_work_of_their_class_and_1_where_nobody_configured_it() -> None:
    settings = SolverSettings(classes={"batch": ClassSettings(work=4.0)})
    asked = [demand_state("A", 9.0, request_class=name) for name in ("batch", "default")]
    problem = problem_of(spec("e1"), *asked, settings=settings)
    assert [(row.work, row.demand_work) for row in problem.rows] == [(4.0, 36.0), (1.0, 9.0)]


def test_rows_are_every_cluster_seen_times_every_model_times_every_class() -> None:
    settings = SolverSettings(classes={"default": ClassSettings(), "batch": ClassSettings(tier=1, requires=("json",))})
    problem = problem_of(
        spec("e1", models=("m", "n")),
        demand_state("A", 90.0),
        network_state("B", "site-a", 0.01),
        settings=settings,
    )
    assert [(str(row.route), row.tier, row.demand_rps) for row in problem.rows] == [
        ("A|m|batch", 1, 0.0),
        ("A|m|default", 0, 90.0),
        ("A|n|batch", 1, 0.0),
        ("A|n|default", 0, 0.0),
        ("B|m|batch", 1, 0.0),
        ("B|m|default", 0, 0.0),
        ("B|n|batch", 1, 0.0),
        ("B|n|default", 0, 0.0),
    ]
    assert problem.rows[0].requires == ("json",)


def test_demand_that_is_not_heard_of_any_more_is_held_and_only_what_was_never_measured_is_none() -> None:
    problem = problem_of(
        spec("e1"),
        engine_state("e1"),
        demand_state("A", 90.0, NOW_MS - 3_600_000),
        demand_state("B", None),
        demand_state("C", 40.0, NOW_MS - 14_999),
        demand_state("D", 5.0, invalid=Invalid.NO_SIGNAL_YET),
        demand_state("E", 7.0, invalid=Invalid.LOW_COVERAGE),
        demand_state("F", 0.0, NOW_MS - 3_600_000),
    )
    assert [row.demand_rps for row in problem.rows] == [90.0, 0.0, 40.0, 0.0, 7.0, 0.0]
    assert [row.demand_held for row in problem.rows] == [True, False, False, False, False, False]


def test_a_profile_that_is_lost_costs_an_engine_its_rank_and_not_its_traffic() -> None:
    lost, known = problem_of(
        spec("e1", profile_id="lost"), spec("e2"), profile(), engine_state("e1"), engine_state("e2")
    ).engines
    assert (lost.exclusion, lost.capacity_rps, lost.measured) == (None, 100.0, None)
    assert lost.latency_sentence == (
        "latency unknown: profile lost is not known, taken to be as slow as the slowest one when full"
    )
    assert known.latency_sentence == ""


def test_what_stands_in_for_a_profile_is_flat_and_as_slow_as_the_slowest_known_one_when_full() -> None:
    faster = profile("q", ttft_s=(0.1, 0.1, 0.1))
    found = problem_of(spec("e1", profile_id="lost"), profile(), faster, engine_state("e1")).profiles["lost"]
    assert (found.load_knots, found.ttft_s, found.tbot_s) == ((0.0, 1.0), (0.8, 0.8), (0.03, 0.03))
    assert found.output_tokens == 100.0
    alone = problem_of(spec("e1", profile_id="lost"), engine_state("e1")).profiles["lost"]
    assert (alone.ttft_s, alone.tbot_s) == ((1.0, 1.0), (0.0, 0.0))


def test_profiles_are_lost_when_no_engine_has_one() -> None:
    without = {"capacity_rps_per_replica": None}
    drained = spec("e0", drain=True, **without)
    lost = problem_of(drained, spec("e1", **without), spec("e2", **without), engine_state("e1"))
    assert lost_profiles(lost) == "profiles lost: none of 2 engines has a known one (p), the last weights stand"
    assert lost_profiles(problem_of(drained, spec("e1", **without), spec("e2"), engine_state("e2"))) is None
    assert lost_profiles(problem_of(drained)) is None


def test_an_engine_whose_clock_is_ahead_is_stale_and_nobody_is_measured_by_it() -> None:
    ahead, other = problem_of(
        spec("e1"), spec("e2"), profile(), engine_state("e1", NOW_MS + 49 * 60_000), engine_state("e2", NOW_MS - 20_000)
    ).engines
    assert ahead.exclusion is not None
    assert (ahead.exclusion.reason, ahead.exclusion.sentence) == (Reason.STALE, "its clock is 49 min ahead")
    assert (other.exclusion, other.factor) == (None, 1.0)
    (slightly,) = problem_of(spec("e1"), profile(), engine_state("e1", NOW_MS + 60_000)).engines
    assert slightly.exclusion is None


def test_a_fleet_of_clocks_that_are_ahead_is_telemetry_lost() -> None:
    problem = problem_of(spec("e1"), profile(), engine_state("e1", NOW_MS + 60_001), demand_state("A", 1.0))
    assert lost_telemetry(problem) is not None


def test_demand_of_a_clock_that_is_ahead_is_held() -> None:
    (row,) = problem_of(spec("e1"), engine_state("e1"), demand_state("A", 9.0, NOW_MS + 60_001)).rows
    assert (row.demand_rps, row.demand_held) == (9.0, True)


def test_a_class_that_is_not_configured_gets_a_row_that_outlives_its_demand() -> None:
    problem = problem_of(spec("e1"), demand_state("A", 5.0, NOW_MS - 60_000, request_class="vip"))
    assert RouteKey("A", "m", "vip") in {row.route for row in problem.rows}


def test_a_model_nobody_serves_has_a_row_while_it_is_asked_for_and_then_none() -> None:
    asked = problem_of(spec("e1"), demand_state("A", 5.0, model="other"))
    silent = problem_of(spec("e1"), demand_state("A", 5.0, NOW_MS - 60_000, model="other"))
    assert RouteKey("A", "other", "default") in {row.route for row in asked.rows}
    assert RouteKey("A", "other", "default") not in {row.route for row in silent.rows}


def test_a_round_trip_outlives_its_probes_and_a_lost_link_is_not_an_unknown_one() -> None:
    problem = problem_of(
        network_state("A", "far", 0.2, NOW_MS - 3_600_000),
        network_state("A", "lost", None, lost_share=1.0),
        network_state("A", "never", None, lost_share=None),
    )
    assert problem.network_s == {("A", "far"): 0.2, ("A", "lost"): None}


def test_telemetry_is_lost_when_nobody_who_might_serve_is_heard_of() -> None:
    expired = engine_state("e1", NOW_MS - 20_000)
    lost = problem_of(spec("e1"), spec("e2"), spec("e3", drain=True), profile(), expired, engine_state("e3"))
    assert lost_telemetry(lost) == "telemetry lost: none of 2 engines is heard of, the last weights stand"


@pytest.mark.parametrize(
    "records",
    [
        (),
        (spec("e1", drain=True), profile()),
        (spec("e1"), spec("e2"), profile(), engine_state("e1")),
        (spec("e1"), profile(), engine_state("e1", health=Health.UNHEALTHY)),
    ],
)
def test_an_empty_fleet_a_drained_one_and_one_voice_are_no_lost_telemetry(records: tuple[Record, ...]) -> None:
    assert lost_telemetry(problem_of(*records)) is None


RECORDS: tuple[Record, ...] = (
    spec("e1", models=("n", "m")),
    spec("e2", site="site-b", drain=True),
    profile(),
    profile("q"),
    engine_state("e1"),
    engine_state("e2", NOW_MS - 9_000),
    demand_state("A", 90.0),
    demand_state("B", 20.0, request_class="vip"),
    network_state("A", "site-a", 0.01),
    network_state("A", "site-b", None, lost_share=1.0),
)


@given(st.permutations(RECORDS))
def test_the_order_in_which_records_came_does_not_matter(records: list[Record]) -> None:
    shuffled = problem_of(*records)
    sorted_ = problem_of(*RECORDS)
    assert shuffled == sorted_
    assert list(shuffled.network_s) == list(sorted_.network_s)
    assert list(shuffled.profiles) == list(sorted_.profiles)


def test_the_problem_says_how_far_its_inputs_had_been_read() -> None:
    inputs = (InputOffsets("headrace.fleet", (4,)),)
    assert assemble(StateFold(TOPICS).view(inputs), SETTINGS, NOW_MS).inputs == inputs
