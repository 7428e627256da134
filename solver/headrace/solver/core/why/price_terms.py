"""A price in its parts, the ways that were rejected, and what capacity is worth: all read from a plan's duals.

congestion = min(pool price, dearest slope) - engine latency     what one more request adds to everybody else there,
                                                                 and to all there when the load swings (`load_spread`)
scarcity   = max(pool price - dearest slope, 0)                  above 0 only where the engine is full
gap        = network + pool price + move - route dual            reduced cost: the exact break-even
worth      = capacity of a replica x sum of width max(0, pool price - slope)        dual of the capacity bounds;
                                                                 no latency where some is shed (`shed_of_part`)

A plan's prices are of work; what is told here is of a request of the route: of work w, it is w times as long in an
engine, and adds w times as much to the others'.
"""

from collections.abc import Iterator

import numpy as np

from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.parts import Part, parts_of
from headrace.solver.core.program.pins import ROOM, pairs_at_most, pins_of
from headrace.solver.core.program.plan import Curves, Plan
from headrace.solver.core.program.predictions import FULL
from headrace.solver.core.why.explanation import Alternative, PriceTerms
from headrace.solver.settings import SolverSettings

SOME_RPS = 1e-9
LEAST_TOLD_RPS = 0.05
"""What is printed as 0.1 or more."""
WALL = 1.0
"""The load at which an engine serves all that it can."""
MAX_ALTERNATIVES = 2
AT_KNOT = 1e-6
"""A load this near to a knot is at it."""


def price_terms(
    layout: Layout, plan: Plan, settings: SolverSettings, curves: Curves, at: tuple[int, int]
) -> PriceTerms:
    """Give the parts of an engine's price for a route; `at` is (pair, engine).

    Where the pair carries flow and the policy knows prices, they add up to the route's dual, or to more where the route
    stays as it was because moving is not worth it, to that way's own price where it is pinned; else to what a first
    request would cost. A policy without prices has its marginal read from the curves, without scarcity.

    Beyond the wall nothing was measured, and an engine serves no faster than at it: its parts are those at the wall,
    and what waits there besides has no price (`Explanation.utilisation` says how much is sent).
    """
    pair, engine = at
    group = int(layout.engine_group[engine])
    profile_id = layout.group_profile[group]
    exact, chords, steady = curves.exact[profile_id], curves.chords[profile_id], curves.steady[profile_id]
    load = np.minimum(np.array([plan.load[group] / layout.group_capacity[group]]), WALL)
    latency = float(steady.value(load)[0] / load[0]) if load[0] > 0.0 else float(steady.slope(load)[0])
    price = float(exact.slope(load)[0])
    if plan.prices is not None:
        price = float(plan.prices.pool[layout.pair_pool[pair]])
        if load[0] <= 0.0:
            price = max(price, float(chords.slopes[0]))
    on_curve = price if plan.prices is None else min(price, float(chords.slopes[-1]))
    work = float(layout.row_work[layout.pair_row[pair]])
    network, price = float(layout.pair_network[pair]) * work, price * work
    move = _move(layout, plan, settings, pair, network + price)
    return PriceTerms(
        network_ms=network,
        engine_ms=latency * work,
        congestion_ms=(on_curve - latency) * work,
        scarcity_ms=price - on_curve * work,
        move_ms=move,
        marginal_ms=network + price + move,
    )


def _move(layout: Layout, plan: Plan, settings: SolverSettings, pair: int, unmoved_ms: float) -> float:
    row = int(layout.pair_row[pair])
    if plan.prices is None or layout.demand[row] <= 0.0:
        return 0.0
    if pair in pins_of(layout).pair:
        # What a pin costs is apart (`binding_constraints`): the dual is not this way's price, nor is it to explain it.
        return settings.move_price_ms if _warm(layout, row) and plan.flow[pair] > layout.pair_warm[pair] else 0.0
    if plan.flow[pair] > SOME_RPS:
        # All that was here may stay at no price, what came anew paid it, and in between it is a rent of the old share.
        # Where the route stays though a better answer is known, the way may be dearer than the dual; nothing moves.
        return max(float(plan.prices.row[row] * layout.row_work[row]) - unmoved_ms, 0.0)
    return settings.move_price_ms if _warm(layout, row) else 0.0


def _warm(layout: Layout, row: int) -> bool:
    return bool(layout.pair_previous[layout.pairs_of(row)].sum() > 0.0)


def rejected_alternatives(
    layout: Layout, plan: Plan, settings: SolverSettings, row: int, but: int | None
) -> tuple[Alternative, ...]:
    """Give the ways of a row that carry nothing, with their gaps, nearest first; without the pair `but`."""
    if plan.prices is None:
        return ()
    pairs = np.arange(int(layout.row_start[row]), int(layout.row_start[row + 1]), dtype=np.int64)
    move = settings.move_price_ms if _warm(layout, row) and layout.demand[row] > 0.0 else 0.0
    work = float(layout.row_work[row])
    way = (layout.pair_network[pairs] + plan.prices.pool[layout.pair_pool[pairs]]) * work
    gap: Floats = way + move - float(plan.prices.row[row]) * work
    open_ = [int(i) for i in np.argsort(gap, kind="stable") if plan.flow[pairs[i]] <= SOME_RPS and int(pairs[i]) != but]
    found: list[Alternative] = []
    for i in open_[:MAX_ALTERNATIVES]:
        pool = layout.pools[layout.pair_pool[pairs[i]]]
        names = tuple(layout.engines[e].engine_id for e in pool.engines)
        found.append(Alternative(names, pool.site, float(gap[i])))
    return tuple(found)


def binding_constraints(layout: Layout, plan: Plan, row: int) -> tuple[str, ...]:
    """Say which constraints hold a row where it is."""
    said: list[str] = []
    roomy: list[str] = []
    warm, unit = layout.pair_warm, "RPS" if plain(layout) else "RPS of work 1"
    at_most = pairs_at_most(layout, plan)
    for pair in range(int(layout.row_start[row]), int(layout.row_start[row + 1])):
        g = int(layout.pair_pool[pair])
        members = np.flatnonzero(layout.group_pool == g)
        load, capacity = float(plan.load[members].sum()), float(layout.pool_capacity[g])
        names = ", ".join(layout.engines[e].engine_id for e in layout.pools[g].engines[:3])
        if load >= capacity * FULL:
            others = "" if plan.flow[pair] > SOME_RPS else " without this route"
            said.append(f"{names} is full at {capacity:.1f} {unit}{others}")
        else:
            held = ", held there by its pin" if at_most[pair] else ""
            roomy.append(f"{names} at {100 * load / capacity:.1f} % of {capacity:.1f} {unit}{held}")
        kept = float(warm[pair])
        if plan.prices is not None and kept > SOME_RPS and abs(float(plan.flow[pair]) - kept) <= 1e-6 * kept:
            said.append(f"what was at {layout.pools[g].site} stays there, warm")
    said.extend(_pins(layout, plan, row))
    shed_rps = float(plan.shed[row] / layout.row_work[row])
    if shed_rps >= LEAST_TOLD_RPS:
        more = f" and {len(roomy) - 3} more" if len(roomy) > 3 else ""
        but = f" but {', '.join(roomy[:3])}{more}" if roomy else ""
        stands = ", and its weights stand" if roomy and plan.kept[row] else ""
        said.append(f"{shed_rps:.1f} RPS of the route are shed: all its engines are full{but}{stands}")
    return tuple(said)


def _pins(layout: Layout, plan: Plan, row: int) -> Iterator[str]:
    """Say each pin of a row, and what it costs where it holds against the price."""
    pins = pins_of(layout)
    demand = float(layout.demand[row])
    for i in np.flatnonzero(layout.pair_row[pins.pair] == row).tolist():
        pair, pin = int(pins.pair[i]), layout.problem.pins[int(pins.of[i])]
        words = f"{pin.engine_id} is {pin.sentence}"
        at_least = abs(float(plan.flow[pair]) - pins.least[i] * demand) <= ROOM * demand
        at_most = abs(float(plan.flow[pair]) - pins.most[i] * demand) <= ROOM * demand
        # Where pins ask for all, or requests are shed, there is no next best to measure by.
        alone = float(pins.asked[i]) >= 1.0 - ROOM or plan.shed[row] > SOME_RPS
        if plan.prices is None or not (at_least or at_most) or demand <= 0.0 or alone:
            yield words
            continue
        price = layout.pair_network[pair] + plan.prices.pool[layout.pair_pool[pair]] - plan.prices.row[row]
        dearer = float(price * layout.row_work[row])
        more = "dearer" if dearer > 0.0 else "cheaper"
        yield f"{words} (a request there is {abs(dearer):.1f} ms {more} than the route's next best)"


def replica_worth(layout: Layout, plan: Plan, curves: Curves, engine: int) -> float | None:
    """Give the most that one more replica of an engine would take off the objective, ms x RPS.

    None without prices, and where something is shed in the pool's part: prices there hold that of shedding, which is
    no latency, and the mean may even rise, since what was shed is then among what it is a mean of.
    """
    if plan.prices is None or shed_of_part(layout, plan, engine) > 0.0:
        return None
    chords = curves.chords[layout.group_profile[layout.engine_group[engine]]]
    price = float(plan.prices.pool[layout.engine_pool[engine]])
    per_rps = float(chords.widths @ np.maximum(price - chords.slopes, 0.0))
    spec = layout.engines[engine]
    return per_rps * spec.capacity_rps_per_replica * spec.factor


def replica_worth_rps(layout: Layout, plan: Plan, engine: int) -> float | None:
    """Give how much of what routes to an engine's pool shed one more replica of it would let serve, work/s, at least.

    In work it is a promise: who is served for it may be others, of a higher tier, who reach it by a chain of moves, and
    in requests that may be few. None where a pin is in the pool's part: one may be what refuses them, room or not.
    """
    pool = int(layout.engine_pool[engine])
    pins = pins_of(layout)
    if pins:
        part = _part_of(layout, pool)
        if part is not None and bool(np.isin(pins.pair, part.pairs).any()):
            return None
    rows = np.unique(layout.pair_row[layout.pair_pool == pool])
    spec = layout.engines[engine]
    return min(spec.capacity_rps_per_replica * spec.factor, float(plan.shed[rows].sum()))


def shed_of_part(layout: Layout, plan: Plan, engine: int) -> float:
    """Give the work/s shed by rows that hang together with an engine's pool: what a replica of it may come to serve.

    Where the weights stand though another answer is known, prices are that answer's: what it sheds counts as well.
    """
    part = _part_of(layout, int(layout.engine_pool[engine]))
    if part is None:
        return 0.0
    shed = plan.shed if plan.answer is None else np.maximum(plan.shed, plan.answer.shed)
    return float(np.where(shed > SOME_RPS, shed, 0.0)[part.rows].sum())


def _part_of(layout: Layout, pool: int) -> Part | None:
    return next((part for part in parts_of(layout) if pool in part.pools), None)


def plain(layout: Layout) -> bool:
    """Say whether every request is of work 1, so that nobody need be told of work."""
    return bool((layout.row_work == 1.0).all())


def price_interval(
    layout: Layout, plan: Plan, curves: Curves, at: tuple[int, int]
) -> tuple[float, float | None] | None:
    """Give the slopes of an engine's curve just below and just above its load, ms; None above where it is full.

    `at` is (pair, engine): they are of a request of the pair's route.

    Any price between them is one at which it would be loaded just so: the dual is one of them. Where the weights stand
    though another answer is known, prices are that answer's, at loads that are not these: None.
    """
    if plan.prices is None or plan.answer is not None:
        return None
    pair, engine = at
    work, group = float(layout.row_work[layout.pair_row[pair]]), int(layout.engine_group[engine])
    chords = curves.chords[layout.group_profile[group]]
    used = float(plan.load[group] / layout.group_capacity[group])
    below = max(int(np.searchsorted(chords.knots, used - AT_KNOT)) - 1, 0)
    above = int(np.searchsorted(chords.knots, used + AT_KNOT, side="right")) - 1
    higher = float(chords.slopes[above]) * work if above < len(chords.slopes) else None
    return float(chords.slopes[below]) * work, higher
