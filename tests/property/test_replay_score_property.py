"""Scoring's invariants: nothing is lost, quantiles are within their cell, movement is a distance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.dataplane.guards.contract import Cause
from headrace.dataplane.guards.ejection import Ejection, within_share
from headrace.dataplane.guards.panic import panics
from headrace.dataplane.settings import GuardSettings
from headrace.replay.score.latency_mass import mass_of, quantile_s
from headrace.replay.score.movement import route_moved
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.sums import Of
from headrace.replay.score.suspected import left_out_of
from headrace.replay.score.variant import score_variant
from headrace.solver.core.problem import Problem
from played_ticks import Shares, played, route
from solver_problems import problems

ENGINES = ("a", "b", "c", "d")
shares_strategy = st.lists(st.integers(0, 10), min_size=4, max_size=4).filter(any)


def shares(parts: list[int]) -> Shares:
    return {engine: part / sum(parts) for engine, part in zip(ENGINES, parts, strict=True) if part}


@given(st.lists(st.floats(0.002, 900.0), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_of_the_grid_is_within_a_cell_of_the_exact_one(values: list[float], q: float) -> None:
    exact = float(np.quantile(np.array(values), q, method="inverted_cdf"))
    found = quantile_s(mass_of(np.array(values), np.ones(len(values))), q)
    assert found == pytest.approx(exact, rel=0.0222)


@given(shares_strategy, shares_strategy, shares_strategy)
def test_movement_is_a_distance_between_weights(x: list[int], y: list[int], z: list[int]) -> None:
    a, b, c = (route("A", shares(parts)) for parts in (x, y, z))
    assert route_moved(a, a) == 0.0
    assert route_moved(a, b) == route_moved(b, a)
    assert 0.0 <= route_moved(a, b) <= 1.0 + 1e-5
    assert route_moved(a, c) <= route_moved(a, b) + route_moved(b, c) + 1e-5


@given(problems(), st.lists(shares_strategy, min_size=1, max_size=3), st.floats(0.0, 1.0), st.floats(0.0, 0.5))
def test_every_request_is_served_shed_refused_or_still_waits(
    p: Problem, parts: list[list[int]], shed: float, retry: float
) -> None:
    names = [engine.engine_id for engine in p.engines] or ["nobody"]
    clusters = sorted({row.route.cluster for row in p.rows})
    weights = [
        {c: {names[i % len(names)]: share for i, share in enumerate(shares(x).values())} for c in clusters}
        for x in parts
    ]
    ticks = [played(float(s), p, weights[s % len(weights)], shed=shed, retry=retry) for s in range(6)]
    sums = score_variant("x", ticks, ScoreSettings()).sums
    ended = sums[Of.SERVED] + sums[Of.SHED] + sums[Of.REFUSED]
    assert np.all(np.isfinite(sums))
    assert np.all(sums >= -1e-9)
    # Retries of the last tick have not ended, and a backlog is counted as served when it is let in.
    assert ended <= sums[Of.OFFERED] * (1.0 + 1e-9) + 1e-6
    assert ended + sums[Of.RETRIES] >= sums[Of.OFFERED] * (1.0 - 1e-9) - 1e-6


suspects = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300_000)), max_size=6)
"""Instant of each suspect's ejection, and its weight on the route, ppm."""


@given(
    st.lists(st.tuples(suspects, st.integers(0, 600_000)), min_size=1, max_size=4),
    st.sampled_from([0.3, 0.6, 1.0]),
    st.sampled_from([0.2, 0.5]),
)
def test_who_is_left_out_of_all_routes_at_once_is_who_a_data_plane_leaves_out_of_each(
    routes: list[tuple[list[tuple[int, int]], int]], most: float, panic_above: float
) -> None:
    rules = GuardSettings(ejected_max=most, panic_above=panic_above)
    expected, whole = list[bool](), list[int]()
    for told, others in routes:
        weights = {"others": others} | {str(n): ppm for n, (_, ppm) in enumerate(told)}
        ejections = [Ejection(str(n), Cause.SLOW_FIRST_TOKEN, at_ms, at_ms + 9, 1) for n, (at_ms, _) in enumerate(told)]
        out = within_share(ejections, weights, rules.ejected_max)
        panic = panics(weights, (), out, rules.panic_above)
        expected += [str(n) in out and not panic for n in range(len(told))]
        whole.append(sum(weights.values()))
    rows = [(r, *each) for r, (told, _) in enumerate(routes) for each in told]
    route, at_ms, ppm = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    found = left_out_of(route, at_ms, ppm, np.array(whole, dtype=np.float64), rules)
    assert found.tolist() == expected
