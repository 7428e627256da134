"""A found tick computed again: the same problem, the snapshot before it, its settings and its stamp. Pure.

assemble(what it had read) ─► decide() ─► the tick with its program, which a record does not have
"""

from dataclasses import dataclass

from headrace.infra.past_tick.found import FoundTick
from headrace.schemas.errors import HeadraceError
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import Tick, TickStamp


class NotDecidedError(HeadraceError):
    """A tick that comes to no snapshot when it is computed again."""


@dataclass(frozen=True, slots=True)
class Again:
    """A tick computed again, its problem, and the routes whose weights are not those that were recorded."""

    problem: Problem
    tick: Tick
    differing: tuple[str, ...]


def compute_again(found: FoundTick, lp: LinearSolver) -> Again:
    """Compute a tick again.

    Raises:
        NotDecidedError: no snapshot comes of it, so that its inputs cannot be those that were read.
    """
    commit, settings = found.recorded.snapshot.commit, found.settings
    problem = assemble(found.view, settings, commit.tick_ms)
    stamp = TickStamp(commit.epoch, commit.version, commit.tick_ms, mode=commit.mode)
    # A tick that was published had waited long enough.
    decided = decide(problem, found.recorded.previous, settings, lp, stamp, commit.tick_ms - settings.first_wait_ms)
    if isinstance(decided, Waiting):
        raise NotDecidedError(f"version {commit.version} cannot be computed again: {decided.sentence}")
    return Again(problem, decided.tick, differing(found.recorded.snapshot, decided.tick.snapshot))


def differing(recorded: Snapshot, ours: Snapshot) -> tuple[str, ...]:
    """Name the routes whose weights differ, and those that only one of the snapshots has; sorted."""
    one, other = (
        {str(route.route): {t.engine_id: t.weight_ppm for t in route.targets if t.weight_ppm} for route in each.routes}
        for each in (recorded, ours)
    )
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))
