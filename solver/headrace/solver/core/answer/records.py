"""A plan -> the decision record of its tick."""

import numpy as np

from headrace.schemas.decisions import PoolDual, RouteDual, SolveRecord
from headrace.schemas.weights import SnapshotCommit
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Effort, Plan

MAX_DUALS = 2000
"""Bound on the duals in one record, dearest first: a record stays far below a topic's largest message."""


def solve_record(layout: Layout | None, plan: Plan | None, commit: SnapshotCommit, moved_rps: float) -> SolveRecord:
    """Give the record of a tick, timings 0; layout and plan are None where the tick only held."""
    demand = capacity = load = shed = 0.0
    effort = Effort()
    routes: tuple[RouteDual, ...] = ()
    pools: tuple[PoolDual, ...] = ()
    if layout is not None and plan is not None:
        demand, capacity = float(layout.requests(layout.demand).sum()), float(layout.pool_capacity.sum())
        load, shed, effort = float(plan.load.sum()), float(layout.requests(plan.shed).sum()), plan.effort
        routes, pools = _route_duals(layout, plan), _pool_duals(layout, plan)
    return SolveRecord(
        epoch=commit.epoch,
        version=commit.version,
        mode=commit.mode,
        status=commit.status,
        rung=plan.rung if plan is not None else "HOLD",
        sentence=commit.sentence,
        tick_ms=commit.tick_ms,
        inputs=commit.inputs,
        policy=commit.policy,
        policy_hash=commit.policy_hash,
        objective=plan.objective if plan is not None else None,
        gap=plan.gap if plan is not None else None,
        demand_rps=demand,
        capacity_rps=capacity,
        shed_rps=shed,
        moved_rps=moved_rps,
        utilisation=load / capacity if capacity > 0.0 else None,
        columns=effort.columns,
        rows=effort.rows,
        components=effort.components,
        iterations=effort.iterations,
        build_us=0,
        solve_us=0,
        check_us=0,
        publish_us=0,
        route_duals=routes,
        pool_duals=pools,
    )


def _route_duals(layout: Layout, plan: Plan) -> tuple[RouteDual, ...]:
    if plan.prices is None:
        return ()
    price = plan.prices.row * layout.row_work
    told: list[float] = price.tolist()
    return tuple(RouteDual(str(layout.rows[i].route), told[i]) for i in _dearest(price))


def _pool_duals(layout: Layout, plan: Plan) -> tuple[PoolDual, ...]:
    if plan.prices is None:
        return ()
    columns = plan.prices.pool, layout.pool_load(plan.load), layout.pool_capacity
    price, load, capacity = (column.tolist() for column in columns)
    return tuple(PoolDual(layout.pools[g].name, price[g], load[g], capacity[g]) for g in _dearest(plan.prices.pool))


def _dearest(prices: Floats) -> list[int]:
    """Give the indices of the dearest `MAX_DUALS`, in their own order."""
    ranked: list[int] = np.argsort(-prices, kind="stable")[:MAX_DUALS].tolist()
    return sorted(ranked)
