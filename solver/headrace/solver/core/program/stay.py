"""Whether moving is worth it: the previous weights stand where the best answer is better by less than `stay_within`.

    stay = true cost of a component's traffic with each row's previous weights, engine by engine, at today's demand
    best = true cost of the program's answer, the price of its moves not counted
    kept   where stay <= (1 + stay_within) best, every row's previous weights are all still usable and keep to its
           pins, and no engine is loaded above `FULLEST`; above `BRIM` where the component sheds, and did before
    slow   where stay <= (1 + `DOUBT` stay_within) best, and no pool's load is further from the best answer's than
           `SIGMAS` deviations of a count over `COUNTED_S`: demand is an estimate, and its noise has an optimum too.
           Weights go towards the answer with the time constant `FOLLOW_MS` then, which follows what of it lasts

The cost is flat around its optimum, so small changes of demand move the optimum far for next to nothing, and every move
costs somebody a warm cache. What is given up is bounded by the setting, and is in the record's gap. In a fleet that is
short every engine is full, and each swing of demand would fill the gaps anew; there, only what is shed is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import PPM
from headrace.solver.core.program.layout import Floats, Layout, sums
from headrace.solver.core.program.part_sums import part_sums
from headrace.solver.core.program.parts import Part
from headrace.solver.core.program.pins import rows_off_pins
from headrace.solver.core.program.plan import Curves
from headrace.solver.core.program.pool_split import split_by_slope

FULLEST = 0.95
"""Share of an engine's capacity above which its traffic is not left as it is: near the wall nothing is flat."""
BRIM = 1.03
"""The same where there is too much for all of them: what is above the wall for a moment waits that moment."""
DOUBT = 6.0
FOLLOW_MS = 20_000.0
SIGMAS = 2.0
COUNTED_S = 6.0
"""Demand is the mean since its last step: seconds after one it is no surer than a count over so many of them."""
WHOLE = 1.0 - 2.0 / PPM


@dataclass(frozen=True, slots=True, eq=False)
class Stay:
    """The rows that keep their weights, (R,), and what it costs that their engines are not split evenly, ms x RPS.

    `slow` are rows that follow the answer slowly, (R,); no row is both.
    """

    rows: npt.NDArray[np.bool_]
    uneven: float
    slow: npt.NDArray[np.bool_]


def staying(
    layout: Layout, curves: Curves, components: Sequence[Part], answer: tuple[Floats, Floats], within: float
) -> Stay:
    """Decide for each component as a whole.

    Args:
        layout: of the problem.
        curves: of its profiles.
        components: what is judged together.
        answer: the program's flow (P,) and shedding (R,).
        within: relative cost that staying may be above the best; 0 keeps nobody.
    """
    if within <= 0.0 or not layout.previous:
        nobody = np.zeros(len(layout.rows), dtype=np.bool_)
        return Stay(nobody, 0.0, nobody)
    flow, shed = answer
    served = layout.demand - shed
    stay, stood = np.zeros_like(flow), np.flatnonzero(layout.pair_previous != 0.0)
    stay[stood] = layout.pair_previous[stood] * served[layout.pair_row[stood]]
    whole = layout.per_row(layout.pair_previous) >= WHOLE
    load = sums(layout.warm.engine, layout.warm.ppm / PPM * served[layout.warm.row], len(layout.engines))
    usable = np.flatnonzero(layout.engine_pool >= 0)
    of_engines = np.zeros(len(layout.engines))
    groups = layout.engine_group[usable]
    of_engines[usable] = _costs(layout, curves, groups, load[usable], layout.engine_capacity[usable])
    best, even = (_of_groups(layout, curves, f) for f in (flow, stay))
    off_pins = rows_off_pins(layout, stay)
    of, some = part_sums(layout, components), np.flatnonzero(flow != 0.0)
    grain = sums(layout.pair_pool[some], flow[some] * layout.row_work[layout.pair_row[some]], len(layout.pools))
    now, least = (of.of_pairs(i, layout.pair_network[i] * f[i]) for i, f in ((stood, stay), (some, flow)))
    by_chance = _by_chance(layout.per_pool(stay), layout.per_pool(flow), grain)
    sheds, did = (of.any_of(of.row, z > 0.0) for z in (shed, layout.row_warm_shed))
    limit = np.where(sheds, BRIM, FULLEST)[of.engine] * layout.engine_capacity
    may = (sheds == did) & ~of.any_of(of.row, ~whole | off_pins) & ~of.any_of(of.engine, load > limit)
    now += of.of_engines(of_engines)
    least += of.of_groups(best)
    uneven = np.maximum(of.of_engines(of_engines) - of.of_groups(even), 0.0)
    keeps = may & (now <= (1.0 + within) * least)
    follow = may & ~keeps & (now <= (1.0 + DOUBT * within) * least) & ~of.any_of(of.pool, ~by_chance)
    # What is in no part asks for nothing.
    keeps[-1] = follow[-1] = False
    return Stay(keeps[of.row], float(uneven[keeps].sum()), follow[of.row])


def _by_chance(stay: Floats, best: Floats, grain: Floats) -> npt.NDArray[np.bool_]:
    """Say of each pool whether its load differs by no more than the noise of the demand it is made of, (G,).

    `grain` is the sum of work squared x requests per second: a count of work has that variance a second.
    """
    return np.asarray(np.abs(stay - best) <= SIGMAS * np.sqrt(grain / COUNTED_S), dtype=np.bool_)


def _of_groups(layout: Layout, curves: Curves, flow: Floats) -> Floats:
    every = np.arange(len(layout.group_pool))
    return _costs(layout, curves, every, split_by_slope(layout, curves, flow), layout.group_capacity)


def _costs(layout: Layout, curves: Curves, group: npt.NDArray[np.int64], load: Floats, capacity: Floats) -> Floats:
    """Give capacity x L(load / capacity) of engines or groups, each by the profile of its group."""
    costs = np.zeros(len(load))
    numbers = layout.group_number[group]
    for number, profile_id in enumerate(layout.profiles):
        of = np.flatnonzero(numbers == number)
        costs[of] = capacity[of] * curves.exact[profile_id].value(load[of] / capacity[of])
    return costs
