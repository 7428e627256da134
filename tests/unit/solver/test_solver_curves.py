"""Profiles, their cost of load, and the chords of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.problem import Problem
from headrace.solver.core.profile.counted import with_headroom
from headrace.solver.core.profile.hull import lower_hull
from headrace.solver.core.profile.load_cost import FREE, latency_ms, load_cost
from headrace.solver.core.profile.segments import segments_of
from headrace.solver.core.program.curves import anchors_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, profiles_strategy, row


def test_the_cost_is_the_load_times_the_latency_there() -> None:
    p = profile(tbot_s=(0.01, 0.01, 0.02))
    cost = load_cost(p)
    # At load 0.75: TTFT 200 ms + 10 tokens x 15 ms = 350 ms.
    assert cost.value(np.array([0.25, 0.75])) == pytest.approx([0.25 * 200, 0.75 * 350])
    # Slope right of the knee: latency + load x rise = 200 + 0.5 x 600.
    assert cost.slope(np.array([0.5])) == pytest.approx([200 + 0.5 * 600])


def test_the_least_of_cost_minus_price_is_exact() -> None:
    cost = load_cost(profile())
    # L = 100 u up to 0.5, then u (100 + 400 (u - 0.5)) = -100 u + 400 u^2: least of L - 400 u at u = 0.625.
    assert cost.least(400.0) == pytest.approx(-500 * 0.625 + 400 * 0.625**2)
    assert cost.least(0.0) == 0.0
    assert cost.least(1e6) == pytest.approx(300 - 1e6)
    assert FREE.least(5.0) == -5.0


@given(profiles_strategy("p"), st.floats(0, 5000))
def test_the_least_is_below_every_sample_and_touches_one(p: LatencyProfile, price: float) -> None:
    cost = load_cost(p)
    grid = np.linspace(0, 1, 2001)
    samples = cost.value(grid) - price * grid
    assert cost.least(price) <= samples.min() + 1e-9
    assert cost.least(price) >= samples.min() - 1.0 - 0.01 * abs(samples.min())


def test_headroom_is_paid_for_above_its_line_only() -> None:
    cost, plain = with_headroom(load_cost(profile()), 0.9, 1000.0), load_cost(profile())
    u = np.array([0.5, 0.9, 1.0])
    assert cost.value(u) - plain.value(u) == pytest.approx([0.0, 0.0, 100.0])
    assert 0.9 in segments_of(cost, 8, 0.9).knots
    assert segments_of(load_cost(replace(profile(), ttft_s=(0.1, 0.1, 0.1))), 8, 0.9).knots.tolist() == [0.0, 1.0]


def test_a_curve_goes_on_with_its_last_slope_and_stays_flat_before_its_first_knot() -> None:
    p = profile(knots=(0.2, 0.6), ttft_s=(0.1, 0.2), tbot_s=(0.0, 0.0))
    ttft, _ = latency_ms(p, np.array([0.0, 0.2, 0.4, 0.6, 1.0]))
    assert ttft == pytest.approx([100, 100, 150, 200, 300])
    one = profile(knots=(0.5,), ttft_s=(0.1,), tbot_s=(0.0,))
    assert latency_ms(one, np.array([0.9]))[0] == pytest.approx([100])


def test_a_latency_that_falls_goes_on_flat_where_nobody_measured_and_never_below_nothing() -> None:
    falling = profile(knots=(0.2, 0.7), ttft_s=(50.0, 1.0), tbot_s=(0.01, 0.0))
    ttft, tbot = latency_ms(falling, np.array([0.7, 0.85, 1.0]))
    assert ttft.tolist() == pytest.approx([1000.0] * 3)
    assert tbot.tolist() == pytest.approx([0.0] * 3)
    assert load_cost(falling).least_latency() >= 0.0


def test_a_kink_of_the_profile_is_a_knot_of_the_chords() -> None:
    chords = segments_of(load_cost(profile()), 8)
    assert 0.5 in chords.knots
    assert chords.slopes[0] == pytest.approx(100.0)
    assert chords.widths.sum() == pytest.approx(1.0)


def test_a_straight_curve_needs_one_chord() -> None:
    assert segments_of(FREE, 8).knots.tolist() == [0.0, 1.0]
    flat = segments_of(load_cost(profile(ttft_s=(0.2, 0.2, 0.2))), 8)
    assert flat.slopes == pytest.approx([200.0])


@given(profiles_strategy("p"), st.integers(2, 20))
def test_chords_never_fall_in_slope_and_lie_on_the_convex_envelope(p: LatencyProfile, count: int) -> None:
    cost = load_cost(p)
    chords = segments_of(cost, count)
    assert len(chords.slopes) <= count
    assert (np.diff(chords.slopes) > 0).all()
    assert chords.knots[0] == 0.0
    assert chords.knots[-1] == 1.0
    at_knots = np.concatenate(([0.0], np.cumsum(chords.slopes * chords.widths)))
    assert (at_knots <= cost.value(chords.knots) + 1e-4 * at_knots[-1]).all()


def queueing(steepness: float) -> LatencyProfile:
    """TTFT = 0.1 / (1 - steepness x load): flat, then a wall."""
    knots = np.linspace(0, 1, 41)
    return profile("p", tuple(knots), tuple(0.1 / (1 - steepness * knots)), tuple(0.0 * knots))


def random_fleet(seed: int) -> Problem:
    """Six clusters, each with an engine at its site, 30 to 97 % of capacity in demand, unevenly."""
    dice = np.random.default_rng(seed)
    capacity = dice.uniform(5, 50, 6)
    demand = dice.dirichlet(np.ones(6)) * capacity.sum() * dice.uniform(0.3, 0.97)
    links = {(f"c{i}", f"s{j}"): 3.0 if i == j else float(dice.uniform(10, 150)) for i in range(6) for j in range(6)}
    return problem(
        [row(f"c{i}", float(d)) for i, d in enumerate(demand)],
        [engine(f"e{j}", f"s{j}", float(c)) for j, c in enumerate(capacity)],
        links,
        (queueing(0.97),),
    )


def test_the_default_number_of_chords_costs_less_than_one_percent_on_a_curve_of_one_to_thirty() -> None:
    def cost(seed: int, segments: int) -> float:
        settings = SolverSettings(segments=segments)
        record = solve_tick(random_fleet(seed), None, settings, Glop(threads=1), TickStamp(1, 1, 1)).record
        assert record.objective is not None
        assert record.gap is not None
        # The certificate holds: no finer plan is below what it promised.
        lowest.append((record.objective * (1 - record.gap), seed))
        return record.objective

    lowest: list[tuple[float, int]] = []
    fine = [cost(seed, 64) for seed in range(12)]
    regret = [cost(seed, SolverSettings().segments) / fine[seed] - 1 for seed in range(12)]
    assert max(regret) < 0.01
    assert float(np.mean(regret)) < 0.003
    assert all(bound <= fine[seed] * (1 + 1e-9) for bound, seed in lowest)


def test_chords_anchored_at_the_last_load_leave_a_fifth_of_a_percent() -> None:
    def gap(seed: int, anchors: int) -> float:
        settings = SolverSettings(stay_within=0.0, move_price_ms=0.0, anchors=anchors)
        tick = solve_tick(random_fleet(seed), None, settings, Glop(threads=1), TickStamp(1, 1, 0))
        for version in (2, 3):
            tick = solve_tick(random_fleet(seed), tick.snapshot, settings, Glop(threads=1), TickStamp(1, version, 0))
        assert tick.record.gap is not None
        return tick.record.gap

    free, anchored = ([gap(seed, anchors) for seed in range(8)] for anchors in (0, 4))
    # On a curve of one to thirty, by the certificate; the mean, since one fleet of the eight is at its wall.
    assert float(np.mean(anchored)) <= 0.002
    assert float(np.mean(anchored)) < float(np.mean(free)) / 2


def test_anchors_are_knots_and_stand_where_the_previous_weights_put_the_engines() -> None:
    fleet, settings = random_fleet(1), SolverSettings(anchors=2)
    first = solve_tick(fleet, None, settings, Glop(threads=1), TickStamp(1, 1, 0))
    assert anchors_of(lay_out(fleet, None), 2) == {}
    layout = lay_out(fleet, first.snapshot)
    (anchors,) = anchors_of(layout, 2).values()
    assert len(anchors) == 6
    loads = sorted(t.utilisation or 0.0 for r in first.snapshot.routes for t in r.targets)
    assert loads[0] - 0.03 <= anchors[0] <= anchors[-1] <= loads[-1] + 0.03
    chords = segments_of(load_cost(queueing(0.97)), 8, None, anchors)
    assert set(anchors) <= set(chords.knots.tolist())
    assert (np.diff(chords.slopes) > 0).all()
    assert segments_of(FREE, 8, None, anchors).knots.tolist() == [0.0, 1.0]


def test_the_lower_hull_keeps_the_corners_below() -> None:
    x, y = lower_hull(np.array([0.0, 1.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 1.0, 4.0]))
    assert (x.tolist(), y.tolist()) == ([0.0, 2.0, 3.0], [0.0, 1.0, 4.0])
