"""Prices of a large program are guessed: by a slope and a bend that are true, in steps that do not overshoot."""

from dataclasses import replace

import numpy as np
import pytest

from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.hubs import Hubs, hubs_of
from headrace.solver.core.program.layout import lay_out
from headrace.solver.core.program.price_guess import guess_prices, prices_before
from headrace.solver.core.program.program import costs_of
from headrace.solver.core.program.smooth_dual import excess_at, parts_of_network, slope_at
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import coupled_fleet, engine, problem, row

SETTINGS = SolverSettings(sift_above=10**6)


def network_of(clusters: int, engines: int, models: int, sites: int) -> Hubs:
    layout = lay_out(coupled_fleet(clusters, engines, models, seed=9, sites=sites), None)
    curves = curves_of(layout, SETTINGS)
    return hubs_of(layout, curves, costs_of(layout, curves, 30.0))


@pytest.mark.parametrize("temperature", [30.0, 4.0])
def test_the_bend_says_how_much_less_pools_are_asked_for_when_prices_rise(temperature: float) -> None:
    parts = parts_of_network(network_of(10, 60, 6, 4))
    dice = np.random.default_rng(1)
    prices = 200.0 + dice.uniform(-10, 10, parts.pools)
    change = dice.uniform(-1, 1, parts.pools)
    little = 1e-5
    here = slope_at(parts, prices, temperature, 0.15, bend=True)
    up, down = (slope_at(parts, prices + s * little * change, temperature, 0.15, bend=False) for s in (1, -1))
    measured = (down.excess - up.excess) / (2.0 * little)
    # Shares of a row below a thousandth are left out of the bend.
    assert here.times(change) == pytest.approx(measured, rel=2e-2, abs=2e-3 * float(np.abs(measured).max()))


@pytest.mark.parametrize("temperature", [30.0, 1.0])
def test_what_pools_are_asked_for_too_much_is_told_alone_to_the_same_bits(temperature: float) -> None:
    parts = parts_of_network(network_of(10, 60, 6, 4))
    prices = 200.0 + np.random.default_rng(1).uniform(-10, 10, parts.pools)
    slope = slope_at(parts, prices, temperature, 0.05, bend=False)
    assert excess_at(parts, prices, temperature, 0.05).tobytes() == slope.excess.tobytes()


def test_many_small_pools_draw_no_more_than_one_large_one() -> None:
    parts = parts_of_network(network_of(10, 60, 6, 4))
    level = np.full(parts.pools, 200.0)
    slope = slope_at(parts, level, 30.0, 0.15, bend=False)
    held = np.bincount(parts.chord_pool, weights=parts.width, minlength=parts.pools)
    nobody = replace(parts, demand=np.zeros_like(parts.demand))
    asked = slope.excess - slope_at(nobody, level, 30.0, 0.15, bend=False).excess
    # Of a hub's pools, all of one price, each is asked for what is in proportion to what it holds.
    for hub in range(parts.hubs):
        own = parts.link_pool[parts.link_hub == hub]
        alone = own[np.bincount(parts.link_pool, minlength=parts.pools)[own] == 1]
        if len(alone):
            share = asked[alone] / held[alone]
            assert share == pytest.approx(np.full(len(alone), share[0]))


def test_how_dear_whole_models_are_is_guessed_too_along_a_chain_of_shared_engines() -> None:
    p = coupled_fleet(30, 600, 40, seed=12, sites=5)
    layout = lay_out(p, None)
    curves = curves_of(layout, SETTINGS)
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    guess = guess_prices(hubs, prices_before(layout))
    decision = solve_tick(p, None, SETTINGS, Glop(), TickStamp(1, 1, 0)).decision
    assert decision is not None
    assert decision.plan.prices is not None
    used = layout.per_pool(decision.plan.flow) > 0.0
    off = np.abs(guess - decision.plan.prices.pool)[used]
    # Of prices near 400 ms; each price moved alone leaves a tenth of them 20 ms off.
    assert float(np.quantile(off, 0.9)) < 8.0


def test_a_pool_that_is_asked_for_the_same_at_any_price_still_has_a_bend_to_divide_by() -> None:
    # A billion a second that have one way: what a price changes of that is less than their last digit.
    layout = lay_out(problem([row("a", 1e9)], [engine("e1", capacity=1e9)]), None)
    curves = curves_of(layout, SolverSettings())
    hubs = hubs_of(layout, curves, costs_of(layout, curves, 30.0))
    slope = slope_at(parts_of_network(hubs), np.zeros(1), 1.0, 0.15, bend=True)
    assert slope.steep[0] > 0.0
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(guess_prices(hubs, prices_before(layout))).all()
