"""The load cost of each profile, exact and as chords; computed once, since it depends on nothing else."""

from functools import lru_cache

from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.profile.load_cost import FREE, LoadCost, load_cost
from headrace.solver.core.profile.segments import Segments, segments_of
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Curves
from headrace.solver.settings import SolverSettings

MAX_REMEMBERED = 4096


def curves_of(layout: Layout, settings: SolverSettings) -> Curves:
    """Give the curves of every profile that a layout's groups use."""
    exact: dict[str, LoadCost] = {}
    chords: dict[str, Segments] = {}
    for profile_id in sorted(set(layout.group_profile)):
        exact[profile_id], chords[profile_id] = _curve(
            layout.problem.profiles[profile_id],
            settings.segments,
            settings.engine_cost,
            settings.headroom_load,
            settings.headroom_price_ms,
        )
    return Curves(exact, chords)


@lru_cache(maxsize=MAX_REMEMBERED)
def _curve(
    profile: LatencyProfile, segments: int, engine_cost: str, headroom_load: float, headroom_price_ms: float
) -> tuple[LoadCost, Segments]:
    if engine_cost == "none":
        return FREE, segments_of(FREE, 1)
    cost = load_cost(profile, headroom_load, headroom_price_ms)
    return cost, segments_of(cost, segments, headroom_load if headroom_price_ms > 0.0 else None)
