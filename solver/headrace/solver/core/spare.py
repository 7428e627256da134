"""Who is to keep what a penalty took: an engine for whose penalty somebody would be shed.

A penalty takes no more than the others have room for, as far as it can tell (`protections/room`). It knows neither
which round trips are unknown nor pins, what two models take from each other, or what later protections withhold. The
program knows all of it, so it has the last word: half an answer is better than none.
"""

import numpy as np

from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.parts import parts_of
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.protections.penalty import ERRORS, OUTLIER

_SOME = 1e-6
"""Shed of demand; less is the last bits of a division."""


def to_spare(guarded: Guarded, layout: Layout, plan: Plan) -> frozenset[str]:
    """Give the engines that a penalty takes something from, in the parts of the program where somebody is shed."""
    penalised = {p.engine_id for p in guarded.protections if p.protection in (ERRORS, OUTLIER) and p.factor < 1.0}
    shed = plan.shed > _SOME * layout.demand
    if not penalised or not shed.any():
        return frozenset()
    short = np.zeros(len(layout.pools), dtype=np.bool_)
    for part in parts_of(layout):
        if shed[part.rows].any():
            short[part.pools] = True
    pools = (pool for pool, is_short in zip(layout.pools, short.tolist(), strict=True) if is_short)
    return frozenset(layout.engines[e].engine_id for pool in pools for e in pool.engines) & penalised


def sheds_less(plan: Plan, than: Plan) -> bool:
    """Say whether a plan sheds less than another of the same demand."""
    before = float(than.shed.sum())
    return float(plan.shed.sum()) < before * (1.0 - _SOME)
