"""The load cost of each profile, exact and as chords.

    anchors   loads at which the previous weights would put a profile's engines today: its quantiles, and a bit to both
              sides of each

Computed once where it depends on nothing but the profile. With `solver.anchors` above 0 chords are closest together
where the engines are, so that what they leave out of the true cost is least there; the anchors come from the previous
snapshot and today's demand, and nothing else.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.weights import PPM
from headrace.solver.core.profile.counted import freed, with_headroom
from headrace.solver.core.profile.load_cost import FREE, PROBED, LoadCost, load_cost
from headrace.solver.core.profile.segments import GRID, Segments, segments_of
from headrace.solver.core.profile.spread import spread_over
from headrace.solver.core.program.layout import Layout, sums
from headrace.solver.core.program.plan import Curves
from headrace.solver.settings import SolverSettings

MAX_REMEMBERED = 4096
ASIDE = 0.02
"""How far to both sides of an anchor there is another knot: the slope between them is the true one."""


def curves_of(layout: Layout, settings: SolverSettings) -> Curves:
    """Give the curves of every profile that a layout's groups use."""
    anchors = anchors_of(layout, settings.anchors)
    exact: dict[str, LoadCost] = {}
    chords: dict[str, Segments] = {}
    steady: dict[str, LoadCost] = {}
    for profile_id in layout.profiles:
        free_load = settings.probe_share if profile_id.endswith(PROBED) else 0.0
        rules = _Rules(
            settings.engine_cost, settings.load_spread, settings.headroom_load, settings.headroom_price_ms, free_load
        )
        found = _curve(layout.problem.profiles[profile_id], settings.segments, anchors.get(profile_id, ()), rules)
        exact[profile_id], chords[profile_id], steady[profile_id] = found
    return Curves(exact, chords, steady)


def anchors_of(layout: Layout, count: int) -> dict[str, tuple[float, ...]]:
    """Give the loads, rising, at which each profile's chords are to be anchored: `count` quantiles with their sides."""
    if count == 0 or not len(layout.warm.row):
        return {}
    served = (layout.demand - layout.row_warm_shed)[layout.warm.row]
    rps = sums(layout.warm.engine, layout.warm.ppm / PPM * served, len(layout.engines))
    loads: dict[str, list[float]] = {}
    for e in np.flatnonzero(rps > 0.0).tolist():
        name = layout.group_profile[int(layout.engine_group[e])]
        loads.setdefault(name, []).append(float(rps[e] / layout.engine_capacity[e]))
    found: dict[str, tuple[float, ...]] = {}
    for name, of_profile in sorted(loads.items()):
        middle = np.quantile(of_profile, (np.arange(count) + 0.5) / count)
        steps = np.unique(np.round(np.concatenate([middle + side for side in (-ASIDE, 0.0, ASIDE)]) * GRID))
        found[name] = tuple(float(u) for u in steps / GRID if 0.0 < u < 1.0)
    return found


class _Rules(NamedTuple):
    """What a curve is made by beside its profile, as the solver's settings have it."""

    engine_cost: str
    load_spread: float
    headroom_load: float
    headroom_price_ms: float
    free_load: float


@lru_cache(maxsize=MAX_REMEMBERED)
def _curve(
    profile: LatencyProfile, segments: int, anchors: tuple[float, ...], rules: _Rules
) -> tuple[LoadCost, Segments, LoadCost]:
    if rules.engine_cost == "none":
        return FREE, segments_of(FREE, 1), FREE
    latency = load_cost(profile)
    spread = spread_over(latency, rules.load_spread) if rules.load_spread > 0.0 else latency
    priced = with_headroom(spread, rules.headroom_load, rules.headroom_price_ms)
    cost = freed(priced, rules.free_load)
    if rules.free_load > 0.0:
        anchors = tuple(sorted({*anchors, rules.free_load}))
    must_have = rules.headroom_load if rules.headroom_price_ms > 0.0 else None
    steady = freed(with_headroom(latency, rules.headroom_load, rules.headroom_price_ms), rules.free_load)
    return cost, segments_of(cost, segments, must_have, anchors), steady
