"""What a feedback policy wants to see again at its next tick goes into the memory of its engines."""

from dataclasses import replace

from headrace.schemas.weights import PPM
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.protections.guarded import Guarded


def with_score_errors(guarded: Guarded, layout: Layout, plan: Plan) -> Guarded:
    """Note each pool's error at its first engine; what another policy left there is forgotten."""
    remembered = {
        name: memory if memory.score_error_ppm is None else replace(memory, score_error_ppm=None)
        for name, memory in guarded.remembered.items()
    }
    if plan.score_errors is not None:
        for pool, error in zip(layout.pools, plan.score_errors.tolist(), strict=True):
            engine_id = layout.engines[pool.engines[0]].engine_id
            memory = remembered.get(engine_id, guarded.memory(engine_id))
            remembered[engine_id] = replace(memory, score_error_ppm=round(error * PPM))
    return replace(guarded, remembered=remembered)
