"""The linear program of a tick, one per connected component, as arrays.

    min   sum n x_keep + (n + pi) x_new + sum slope y + sum P[tier] z_keep + (P[tier] + pi) z_new
    s.t.  row:   sum x_keep + sum x_new + z_keep + z_new = demand      dual: marginal ms of one more RPS
          pool:  sum x_keep + sum x_new - sum y = 0                    dual: minus the pool's marginal price
          0 <= x_keep <= previous share (and a ppm) x demand, x_new >= 0, 0 <= y <= capacity x width,
          0 <= z_keep <= previous shed ratio x demand, 0 <= z_new <= demand
          and what pins say of x_keep and x_new (`pins`), and max_step (`steps`)

P[k] = (K - k) B with B = max(3 (slope + way), slope + (wishes + 2) way), of the dearest slope and the dearest way with
its pi: never cheaper to shed a higher tier than a lower one. Where more of a higher tier can be served, a chain of rows
moves on, each to where the next one was, until one of a lower tier is shed or a pool has room. A row that wishes for
the same as one before it in the chain is no part of it: that one could have gone at once to where this one goes. So it
is no longer than there are unlike wishes, and costs less than B; pins aside, which can forbid the short cut. And B is
never so large that the solver loses digits: chains dearer than `DEAREST_CHAIN_MS` are not counted on.

It is per unit of work, as everything here: shedding a request of work w costs w times P, or one of a high tier would go
before a few of a lower that are as much work. Shedding makes every program feasible; as long as it is a tie, those who
are refused stay the same. Columns are x_new, x_keep, y, z_new, z_keep; each `keep` only where something was.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from headrace.solver.core.linear import LinearProgram
from headrace.solver.core.program.chord_columns import chord_columns
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.parts import Part, parts_of
from headrace.solver.core.program.pins import ColumnBounds, column_bounds
from headrace.solver.core.program.plan import Curves
from headrace.solver.core.program.sparse import compressed_rows
from headrace.solver.core.program.steps import Steps, steps_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DEAREST_CHAIN_MS = 1e6
_TIER = attrgetter("tier")


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What columns cost, ms per unit of work: `move` (P,) on new flow of each pair, `shed` (R,) on shedding.

    `shed_move` (R,) is on new shedding; `steps` says from where on a change is dearer.
    """

    move: Floats
    shed: Floats
    shed_move: Floats
    steps: Steps


@dataclass(frozen=True, slots=True, eq=False)
class Component(Part):
    """One program and which of the layout's rows, pools, pairs and groups its columns and constraints stand for.

    `keep` are the pairs that have a x_keep column too, `shed_keep` the rows that have a z_keep column; `far` and `core`
    the pairs with columns for what is beyond a step (`steps`), behind all others.
    """

    far: Ints
    core: Ints
    keep: Ints
    shed_keep: Ints
    program: LinearProgram


def costs_of(
    layout: Layout, curves: Curves, move_price_ms: float, max_step: float = 1.0, step_price_ms: float = 0.0
) -> Costs:
    """Give the move and shed prices; moving is free for a row that sent nothing to any engine it may still use."""
    steps = steps_of(layout, max_step if move_price_ms > 0.0 else 1.0, step_price_ms)
    warm = layout.per_row(layout.pair_previous) > 0.0
    move = np.where(warm, layout.requests(np.full(len(warm), move_price_ms)), 0.0)[layout.pair_row]
    least = float(layout.row_work.min(initial=np.inf)) if len(layout.rows) else 1.0
    dearest_slope = max((float(c.slopes[-1]) for c in curves.chords.values()), default=0.0)
    dearest_way = float(layout.pair_network.max(initial=0.0)) + move_price_ms / least
    dearest_way += 2.0 * step_price_ms / least * steps.any
    base = 3.0 * max(dearest_slope + dearest_way, 1.0)
    chain = dearest_slope + (_unlike_wishes(layout) + 2) * dearest_way
    base = max(base, min(chain, DEAREST_CHAIN_MS))
    tiers = np.array(list(map(_TIER, layout.rows)), dtype=np.float64)
    shed = (float(tiers.max(initial=0.0)) + 1.0 - tiers) * base
    shed_move = layout.requests(np.full(len(layout.rows), move_price_ms if layout.previous else 0.0))
    return Costs(move, shed, shed_move, steps)


def _unlike_wishes(layout: Layout) -> int:
    """Count what rows ask for, and from where they can reach which sites."""
    reached: dict[str, set[str]] = {}
    for (cluster, site), rtt_s in layout.problem.network_s.items():
        if rtt_s is not None:
            reached.setdefault(cluster, set()).add(site)
    numbers: dict[frozenset[str], int] = {}
    asked = layout.asked
    of_clusters = [frozenset(reached.get(cluster, ())) for cluster in asked.clusters]
    view = np.array([numbers.setdefault(sites, len(numbers)) for sites in of_clusters], dtype=np.int64)
    unlike = np.zeros((len(asked.wishes), max(len(numbers), 1)), dtype=np.bool_)
    unlike[asked.wish, view[asked.cluster]] = True
    return int(unlike.sum())


def components_of(layout: Layout, curves: Curves, costs: Costs) -> tuple[Component, ...]:
    """Build the programs of all rows with demand and at least one pool, in the order of their first row."""
    bounds = column_bounds(layout)
    return tuple(_component(layout, curves, (costs, bounds), part) for part in parts_of(layout))


def _component(layout: Layout, curves: Curves, given: tuple[Costs, ColumnBounds], part: Part) -> Component:
    (costs, bounds), rows, pools, pairs = given, part.rows, part.pools, part.pairs
    row_at = np.searchsorted(rows, layout.pair_row[pairs])
    pool_at = np.searchsorted(pools, layout.pair_pool[pairs])
    kept = (layout.pair_previous[pairs] > 0.0) & (costs.move[pairs] > 0.0)
    groups: Ints = np.flatnonzero(np.isin(layout.group_pool, pools))
    chords = chord_columns(layout, curves, groups)
    y_pool = np.repeat(np.searchsorted(pools, layout.group_pool[groups]), chords.count)

    network, demand = layout.pair_network[pairs], layout.demand[rows]
    n_y, n_row = len(chords.slope), len(rows)
    steps = costs.steps
    core = np.flatnonzero(kept & (steps.core[pairs] > 0.0))
    far = np.flatnonzero(np.isfinite(steps.gain[pairs]))
    x_lower, x_upper = _flow_bounds(costs, bounds, pairs, kept)
    x_row, x_pool = np.concatenate((row_at, row_at[kept])), np.concatenate((pool_at, pool_at[kept]))
    x = np.arange(len(x_row))
    y = np.arange(n_y) + len(x)
    shed_before = layout.row_warm_shed[rows]
    stays = np.flatnonzero((shed_before > 0.0) & (costs.shed_move[rows] > 0.0))
    z_row = np.concatenate((np.arange(n_row), stays))
    z = np.arange(len(z_row)) + len(x) + n_y
    beyond = np.concatenate((far, core))
    b = np.arange(len(beyond)) + len(x) + n_y + len(z)
    row_start, columns, coefficients = compressed_rows(
        np.concatenate((x_row, x_pool + n_row, y_pool + n_row, z_row, row_at[beyond], pool_at[beyond] + n_row)),
        np.concatenate((x, x, y, z, b, b)),
        np.concatenate((np.ones(2 * len(x)), -np.ones(n_y), np.ones(len(z)), np.ones(2 * len(b)))),
        n_row + len(pools),
    )
    beyond_upper = np.concatenate((np.full(len(far), np.inf), steps.core[pairs[core]]))
    upper = np.concatenate((x_upper, chords.width, demand, shed_before[stays], beyond_upper))
    lower = np.zeros_like(upper)
    lower[: len(x)] = x_lower
    shed_price = costs.shed[rows] + costs.shed_move[rows]
    program = LinearProgram(
        cost=np.concatenate(
            (
                network + costs.move[pairs],
                network[kept],
                chords.slope,
                shed_price,
                costs.shed[rows[stays]],
                network[far] + costs.move[pairs[far]] + steps.price[pairs[far]],
                network[core] - steps.price[pairs[core]],
            )
        ),
        lower=lower,
        upper=upper,
        rhs=np.concatenate((demand, np.zeros(len(pools)))),
        row_start=row_start,
        columns=columns,
        coefficients=coefficients,
    )
    return Component(rows, pools, pairs, pairs[far], pairs[core], pairs[kept], rows[stays], program)


def _flow_bounds(costs: Costs, bounds: ColumnBounds, pairs: Ints, kept: Bools) -> tuple[Floats, Floats]:
    """Give the bounds of x_new, then of x_keep; a pair without an x_keep has the bounds of both in its x_new."""
    new_lower, new_upper = bounds.new_lower[pairs], bounds.new_upper[pairs]
    whole = ~kept
    new_lower[whole] += bounds.keep_lower[pairs[whole]]
    new_upper[whole] += bounds.keep_upper[pairs[whole]]
    new_upper = np.minimum(new_upper, costs.steps.gain[pairs])
    keep_upper = bounds.keep_upper[pairs[kept]] - costs.steps.core[pairs[kept]]
    return np.concatenate((new_lower, bounds.keep_lower[pairs[kept]])), np.concatenate((new_upper, keep_upper))
