"""Measured curves: the wall, Little's law, and the simulated engine against what was measured."""

from functools import partial

import numpy as np
import pytest

from fleet_inputs import attempt
from headrace.infra.fleet.curves import h100_curve, replica_curve, silicon_curve
from headrace.infra.fleet.engine import Admitted, EngineTimes, SimulatedEngine
from headrace.infra.fleet.scenario import engine_setup, profile_of
from headrace.infra.fleet.tables import rows
from headrace.infra.fleet.timeline import Timeline
from headrace.schemas.check_fleet import check_engine, check_profile
from headrace.schemas.errors import InvalidInputError


def test_the_h100s_wall_is_the_median_of_what_its_saturated_stages_completed() -> None:
    assert h100_curve().capacity_rps == 101.46  # of 101.232, 101.46, 103.078


def test_a_knot_holds_the_end_to_end_mean_that_was_measured_there() -> None:
    curve = h100_curve()
    # Stage 3: 91.357 of 92.19 RPS served, e2e 1021.272 ms with 62.3 tokens; knots are weighed with 62.4.
    assert curve.loads[-2] == pytest.approx(91.357 / 101.46)
    assert curve.latency_s(-2) == pytest.approx(1.0213, rel=2e-3)


def test_littles_law_at_the_wall_finds_the_servers_limit_of_128() -> None:
    assert h100_curve().in_service()[-1] == pytest.approx(128, rel=0.02)


def test_a_replica_of_a_quarter_has_the_same_latency_at_the_same_load_and_a_quarter_of_the_slots() -> None:
    curve = h100_curve()
    whole, quarter = replica_curve(curve, curve.capacity_rps), replica_curve(curve, curve.capacity_rps / 4)
    assert quarter.slots == pytest.approx(whole.slots / 4, abs=1)
    assert quarter.at(10.0) == pytest.approx(whole.at(40.0))
    assert quarter.at(1e9) == (curve.ttft_s[-1], curve.tbot_s[-1])
    assert quarter.at(0.0) == (curve.ttft_s[0], curve.tbot_s[0])


@pytest.mark.parametrize("variant", sorted({row["variant"] for row in rows("inference_perf_h100_llama8b")}))
def test_every_h100_variant_gives_a_curve_that_never_falls(variant: str) -> None:
    assert_sound(h100_curve(variant).loads, h100_curve(variant).ttft_s, h100_curve(variant).tbot_s)


def test_every_silicon_curve_never_falls_and_ends_at_its_wall() -> None:
    for curve_id in sorted({int(row["curve_id"]) for row in rows("silicon_curves_agg")}):
        curve = silicon_curve(curve_id)
        assert_sound(curve.loads, curve.ttft_s, curve.tbot_s)


def assert_sound(loads: tuple[float, ...], ttft_s: tuple[float, ...], tbot_s: tuple[float, ...]) -> None:
    assert loads[0] == 0.0
    assert loads[-1] == 1.0
    assert list(loads) == sorted(set(loads))
    assert list(ttft_s) == sorted(ttft_s)
    assert list(tbot_s) == sorted(tbot_s)


def test_an_unknown_curve_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"vllm\+eagle"):
        h100_curve("sglang")
    with pytest.raises(InvalidInputError, match="curve_id is 1"):
        silicon_curve(1)


def test_the_records_that_an_operator_would_publish_pass_their_checks() -> None:
    curve = h100_curve()
    assert check_profile(profile_of(curve, 25.0)) == ()
    assert check_engine(engine_setup("e", "us-east-1", 4, 25.0, curve).spec) == ()


def steady(rate_rps: float, seconds: float) -> tuple[float, float, float]:
    """Offer 62-token requests at an even pace to four replicas; give completed rps, mean e2e and mean TTFT."""
    setup = engine_setup("e", "us-east-1", 4, 25.365, h100_curve())
    engine = SimulatedEngine(setup.spec, 4, setup.curve, EngineTimes(), np.random.default_rng(0))
    timeline = Timeline()
    e2e: list[float] = []
    ttft: list[float] = []

    def finish(one: Admitted) -> None:
        _, more = engine.finish(timeline.now_s, one)
        e2e.append(one.finish_s - one.attempt.request.arrived_s)
        ttft.append(one.first_token_s - one.attempt.request.arrived_s)
        schedule(more)

    def schedule(admitted: tuple[Admitted, ...]) -> None:
        for one in admitted:
            timeline.at(one.finish_s, partial(finish, one))

    def arrive(number: int) -> None:
        outcome = engine.offer(timeline.now_s, attempt(number, 62, timeline.now_s))
        schedule((outcome,) if isinstance(outcome, Admitted) else ())
        timeline.at((number + 1) / rate_rps, partial(arrive, number + 1))

    timeline.at(0.0, partial(arrive, 0))
    timeline.run_until(seconds)
    half = len(e2e) // 2
    return len(e2e) / seconds, float(np.mean(e2e[half:])), float(np.mean(ttft[half:]))


def test_below_the_wall_the_simulated_engine_shows_what_was_measured() -> None:
    for rate, measured_s in ((31.156, 0.5467), (61.242, 0.6796), (91.357, 1.0213)):
        _, e2e_s, _ = steady(rate, 60.0)
        assert e2e_s == pytest.approx(measured_s, rel=0.02)


def test_beyond_the_wall_it_serves_its_capacity_and_the_rest_waits_as_measured() -> None:
    completed, e2e_s, ttft_s = steady(122.59, 60.0)
    assert completed == pytest.approx(101.232, rel=0.02)
    # Measured: TTFT 2.62 s, e2e 3.84 s, in a stage whose queue was bounded by the load generator.
    assert ttft_s == pytest.approx(2.6, rel=0.05)
    assert e2e_s == pytest.approx(3.84, rel=0.05)
