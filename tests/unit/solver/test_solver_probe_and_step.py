"""A little for engines that nothing is known of, and a price on moving much at once: numbers by hand."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.schemas.weights import PPM, Snapshot
from headrace.solver.core.problem import Measured, Problem
from headrace.solver.core.profile.counted import freed
from headrace.solver.core.profile.load_cost import load_cost
from headrace.solver.core.tick import Tick, TickStamp, policy_hash, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

FLAT = profile(ttft_s=(0.1, 0.1, 0.1))
"""100 ms at any load."""
AT_ONCE = SolverSettings(stay_within=0.0)


def tick(p: Problem, settings: SolverSettings, previous: Snapshot | None = None) -> Tick:
    version = 1 if previous is None else previous.commit.version + 1
    return solve_tick(p, previous, settings, Glop(1), TickStamp(1, version, 1_000 * version))


def weights(found: Tick) -> dict[str, float]:
    return {t.engine_id: t.weight_ppm / PPM for t in found.snapshot.routes[0].targets if t.weight_ppm}


def measured(samples: int) -> Measured:
    return Measured(2.0, 0.1, 0.1, samples)


def near_and_far(far_ms: float, far: Measured | None) -> Problem:
    """Two RPS, an engine of 10 next door and measured, another of 10 further away."""
    engines = [engine("near", "s1", measured=measured(20)), engine("far", "s2", measured=far)]
    return problem([row("c", 2.0)], engines, {("c", "s1"): 0.0, ("c", "s2"): far_ms}, (FLAT,))


PROBING = replace(AT_ONCE, probe_share=0.02)


def test_an_engine_of_which_nothing_is_known_gets_its_share_of_capacity_and_no_more() -> None:
    found = tick(near_and_far(50.0, None), PROBING)
    assert weights(found) == pytest.approx({"near": 0.9, "far": 0.1}), "2 % of 10 RPS is a tenth of 2"
    (note,) = found.snapshot.commit.protections
    assert (note.engine_id, note.protection, note.factor) == ("far", "probe", 1.0)
    assert note.sentence == "not measured of late: the first 2.0 % of its capacity counts for nothing"


@pytest.mark.parametrize(
    ("p", "settings"),
    [
        (near_and_far(50.0, measured(20)), PROBING),
        (near_and_far(150.0, None), PROBING),
        (near_and_far(50.0, None), AT_ONCE),
        (replace(near_and_far(50.0, None), rows=(row("c", 2.0, "other"),)), PROBING),
    ],
    ids=["it is measured", "it is further than the best way costs", "no share is set", "nobody asks for its model"],
)
def test_where_it_is_not_for_anything_nothing_is_probed(p: Problem, settings: SolverSettings) -> None:
    assert "far" not in weights(tick(p, settings))


def test_where_nobody_is_measured_everybody_is_alike_and_nobody_is_probed() -> None:
    p = near_and_far(50.0, None)
    nobody = replace(p, engines=tuple(replace(e, measured=None) for e in p.engines))
    assert tick(nobody, PROBING).snapshot.commit.protections == ()


def test_what_is_free_costs_nothing_and_what_is_beyond_costs_what_it_did() -> None:
    curve = profile(ttft_s=(0.1, 0.2, 0.6))
    free, plain = freed(load_cost(curve), 0.1), load_cost(curve)
    u = np.array([0.0, 0.05, 0.1])
    assert free.value(u) == pytest.approx(0.0, abs=1e-12)
    beyond = np.array([0.2, 0.5, 0.9, 1.0])
    assert free.value(beyond) == pytest.approx(plain.value(beyond) - plain.value(np.array([0.1])))
    assert free.slope(beyond) == pytest.approx(plain.slope(beyond))


def drawn_apart(near_ms: float) -> Problem:
    engines = [engine("a", "s1", 100.0), engine("b", "s2", 100.0)]
    return problem([row("c", 10.0)], engines, {("c", "s1"): near_ms, ("c", "s2"): 50.0}, (FLAT,))


def test_a_weight_changes_by_the_step_at_a_time_where_the_gain_is_less_than_its_price() -> None:
    settings = replace(AT_ONCE, max_step=0.1, step_price_ms=1_000.0)
    first = tick(drawn_apart(0.0), settings)
    assert weights(first) == {"a": 1.0}
    second = tick(drawn_apart(300.0), settings, first.snapshot)
    assert weights(second) == pytest.approx({"a": 0.9, "b": 0.1}, abs=1e-5)
    assert "steps of 10%: 1 routes held back, 0 beyond" in second.snapshot.commit.sentence
    third = tick(drawn_apart(300.0), settings, second.snapshot)
    assert weights(third) == pytest.approx({"a": 0.8, "b": 0.2}, abs=1e-5)


def test_a_gain_above_the_price_goes_beyond_the_step() -> None:
    first = tick(drawn_apart(0.0), AT_ONCE)
    # It saves 250 ms less 30 for the move; both sides of a step cost 100 each, and then 120.
    beyond = replace(AT_ONCE, max_step=0.1, step_price_ms=100.0)
    found = tick(drawn_apart(300.0), beyond, first.snapshot)
    assert weights(found) == pytest.approx({"b": 1.0})
    assert "1 beyond" in found.snapshot.commit.sentence
    held = tick(drawn_apart(300.0), replace(beyond, step_price_ms=120.0), first.snapshot)
    assert weights(held) == pytest.approx({"a": 0.9, "b": 0.1}, abs=1e-5)


def test_an_engine_that_is_gone_is_left_whole_whatever_the_step() -> None:
    settings = replace(AT_ONCE, max_step=0.1, step_price_ms=1_000.0)
    first = tick(drawn_apart(0.0), settings)
    p = drawn_apart(0.0)
    gone = replace(p, engines=tuple(replace(e, ready_replicas=0) if e.engine_id == "a" else e for e in p.engines))
    found = tick(gone, settings, first.snapshot)
    assert weights(found) == {"b": 1.0}
    assert found.snapshot.routes[0].shed_ratio == 0.0


def test_the_gap_of_a_bounded_step_is_certified() -> None:
    settings = replace(AT_ONCE, max_step=0.1, step_price_ms=1_000.0)
    first = tick(drawn_apart(0.0), settings)
    record = tick(drawn_apart(300.0), settings, first.snapshot).record
    assert record.gap is not None
    assert record.gap <= 1e-3


def test_settings_of_a_bound_change_the_policy_hash_only_where_they_are_set() -> None:
    plain = policy_hash(SolverSettings())
    changed = {policy_hash(replace(SolverSettings(), **c)) for c in ({"probe_share": 0.02}, {"max_step": 0.1})}  # type: ignore[arg-type]  # a test's choice of settings
    assert plain not in changed
    assert len(changed) == 2
