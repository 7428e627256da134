"""Where variants differ most from the recorded policy, and why: the same tick decided by both, explained by the solver.

Differences are looked for in the few whole ticks that a score keeps (`witnesses`): demand x change of share, largest
first, one for each (variant, route, engine). A policy that knows no prices is told by the reasons in its snapshot.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.replay.score.variant_score import VariantScore
from headrace.replay.score.witnesses import Witness
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, RouteWeights, Snapshot
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.settings import SolverSettings

PER_VARIANT = 3
LEAST_RPS = 0.01
SHOWN = 0.0005
"""Shares are shown to a tenth of a percent."""
OTHERWISE = "Decided again it comes out otherwise, so its terms are not known; this is what its snapshot says."

Decider = Callable[[Witness], Tick]
"""Decides a witnessed tick once more, as the variant did."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One engine's share of one route at one tick, under the recorded policy and under a variant."""

    variant: str
    at_ms: int
    route: str
    engine_id: str
    recorded_share: float
    share: float
    rps: float
    recorded_because: tuple[str, ...]
    because: tuple[str, ...]


def decider(settings: SolverSettings, lp: LinearSolver) -> Decider:
    """Give what decides a tick by its own settings, and by these where they are not known."""

    def decide(witness: Witness) -> Tick:
        commit = witness.tick.snapshot.commit
        stamp = TickStamp(commit.epoch, commit.version, witness.tick.now_ms)
        return solve_tick(witness.tick.problem, witness.previous, witness.tick.settings or settings, lp, stamp)

    return decide


def largest_differences(
    recorded: VariantScore, others: Sequence[VariantScore], deciders: Mapping[str, Decider]
) -> tuple[Difference, ...]:
    """Give the largest differences of each variant from the recorded one, explained.

    Args:
        recorded: the score that the others are held against.
        others: the variants.
        deciders: of those by name whose weights can be explained by deciding again.
    """
    out: list[Difference] = []
    at = {witness.tick.now_ms: witness for witness in recorded.witnesses}
    for score in others:
        pairs = [(at[w.tick.now_ms], w) for w in score.witnesses if w.tick.now_ms in at]
        found = sorted(_found(pairs), key=lambda f: (-f.rps, f.at_ms, f.route, f.engine_id))
        seen: set[tuple[str, str]] = set()
        for each in found:
            if len(seen) == PER_VARIANT or each.rps < LEAST_RPS:
                break
            if (each.route, each.engine_id) not in seen:
                seen.add((each.route, each.engine_id))
                out.append(_explained(each, (recorded.name, score.name), deciders))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Found:
    at_ms: int
    route: str
    engine_id: str
    shares: tuple[float, float]
    rps: float
    witnesses: tuple[Witness, Witness]


def _found(pairs: Sequence[tuple[Witness, Witness]]) -> Iterator[_Found]:
    for was, now in pairs:
        old = {route.key: route for route in was.tick.snapshot.routes}
        # Not the record's: one that stands has the demand of an older tick, and each variant another's.
        asked = {row.route: row.demand_rps for row in now.tick.problem.rows}
        for route in now.tick.snapshot.routes:
            other = old.get(route.key)
            if other is None:
                continue
            before, after = _shares(other), _shares(route)
            for engine in sorted(before.keys() | after.keys()):
                shares = before.get(engine, 0.0), after.get(engine, 0.0)
                rps = asked.get(route.route, 0.0) * abs(shares[1] - shares[0])
                yield _Found(now.tick.now_ms, str(route.route), engine, shares, rps, (was, now))


def _explained(found: _Found, names: tuple[str, str], deciders: Mapping[str, Decider]) -> Difference:
    because = [
        _why(witness, deciders.get(name), found.route, found.engine_id)
        for name, witness in zip(names, found.witnesses, strict=True)
    ]
    return Difference(
        variant=names[1],
        at_ms=found.at_ms,
        route=found.route,
        engine_id=found.engine_id,
        recorded_share=found.shares[0],
        share=found.shares[1],
        rps=found.rps,
        recorded_because=because[0],
        because=because[1],
    )


def _why(witness: Witness, decide: Decider | None, route: str, engine_id: str) -> tuple[str, ...]:
    cluster, model, request_class = route.split("|")
    if decide is not None:
        try:
            again = decide(witness)
            found = explain(again, cluster, engine_id, model, request_class).sentences
        except InvalidInputError:
            return _told(witness.tick.snapshot, route, engine_id)  # it only held: its snapshot says why
        if _agree(again.snapshot, witness.tick.snapshot, route):
            return found
        return (*_told(witness.tick.snapshot, route, engine_id), OTHERWISE)
    return _told(witness.tick.snapshot, route, engine_id)


def _agree(again: Snapshot, stood: Snapshot, route: str) -> bool:
    """Say whether two snapshots share a route out alike, to what is shown of it."""
    one, other = (
        next((_shares(each) for each in snapshot.routes if str(each.route) == route), None)
        for snapshot in (again, stood)
    )
    if one is None or other is None:
        return one is other
    return all(abs(one.get(e, 0.0) - other.get(e, 0.0)) < SHOWN for e in one.keys() | other.keys())


def _told(snapshot: Snapshot, route: str, engine_id: str) -> tuple[str, ...]:
    record = next(r for r in snapshot.routes if str(r.route) == route)
    for target in record.targets:
        if target.engine_id == engine_id:
            return (target.sentence,)
    for excluded in record.excluded:
        if excluded.engine_id == engine_id:
            return (f"excluded, {excluded.reason}: {excluded.sentence}",)
    return ("gets nothing, and the snapshot says no more",)


def _shares(route: RouteWeights) -> dict[str, float]:
    kept = 1.0 - route.shed_ratio
    return {target.engine_id: kept * target.weight_ppm / PPM for target in route.targets}
