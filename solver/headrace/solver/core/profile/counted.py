"""What counts of an engine's load beside its latency: room that is paid for, and load that is given for nothing."""

from dataclasses import replace

import numpy as np

from headrace.solver.core.profile.load_cost import LoadCost


def with_headroom(cost: LoadCost, load: float, price_ms: float) -> LoadCost:
    """Add a price, ms, on every request above a load; 0 for none."""
    if price_ms <= 0.0:
        return cost
    cut = cost.cut(load)
    beyond = cut.knots[:-1] >= load
    return replace(
        cut,
        constant=cut.constant - np.where(beyond, price_ms * load, 0.0),
        linear=cut.linear + np.where(beyond, price_ms, 0.0),
    )


def freed(cost: LoadCost, load: float) -> LoadCost:
    """Count nothing up to a load, 0 for none; the slopes beyond it stay as they are."""
    if load <= 0.0:
        return cost
    cut = cost.cut(load)
    counted = cut.knots[:-1] >= load
    before = float(cut.value(np.array([load]))[0])
    return LoadCost(
        cut.knots,
        np.where(counted, cut.constant - before, 0.0),
        np.where(counted, cut.linear, 0.0),
        np.where(counted, cut.quadratic, 0.0),
    )
