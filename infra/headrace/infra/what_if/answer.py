"""The tick that stands and the one that would come of an edit, side by side; `to_plain` of it is the command's JSON.

    before   the tick as it was computed; where an operator had frozen it, the frozen weights at that tick's demand
    after    the edited problem solved again and again from the snapshot that stood, time standing still, until the
             weights stay: what the solver comes to once it has moved what it thinks worth moving

Nothing is learnt or recovered on the way, since no time passes: trims and penalties are those of the tick. A route that
says the same as before keeps its record, with the demand of the tick that made it: both sides are told at their tick's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.infra.demo.movement import moved_rps
from headrace.infra.past_tick.again import Again
from headrace.infra.what_if.edits import Edit, edited, notes_on, remembered
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, RouteWeights, Snapshot
from headrace.solver.core.inputs.assemble import lost_profiles, lost_telemetry
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.program.score import score
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.settings import SolverSettings

MAX_TICKS = 40
SETTLED = 1e-3
"""Share of the demand that still moves when the weights are said to stay."""


@dataclass(frozen=True, slots=True)
class Totals:
    """All traffic of one answer: means over what is served, in ms. Latencies above capacity have a queue besides."""

    mean_ms: float
    network_ms: float
    engine_ms: float
    demand_rps: float
    shed_rps: float
    overloaded_rps: float
    capacity_rps: float


@dataclass(frozen=True, slots=True)
class ShareChange:
    """An engine's share of what a route serves, before and after. A route not there, or refused, has share 0."""

    route: str
    engine_id: str
    before_ppm: int
    after_ppm: int
    before_rps: float
    after_rps: float


@dataclass(frozen=True, slots=True)
class ShedChange:
    """What is shed of a route before and after, RPS, of the demand before and after."""

    route: str
    before_rps: float
    after_rps: float
    before_demand_rps: float
    after_demand_rps: float


@dataclass(frozen=True, slots=True)
class EngineChange:
    """An engine's load and effective capacity before and after, RPS."""

    engine_id: str
    before_load_rps: float
    after_load_rps: float
    before_capacity_rps: float
    after_capacity_rps: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What an edit would come to.

    Attributes:
        version: of the snapshot that stands; `tick_ms` likewise.
        edits: what is changed, in words.
        inputs_proved: whether the tick's inputs are, by digest, what the solver had read.
        ticks: ticks until the weights stay.
        settled: whether they do, within the bound on ticks.
        sentence: the last of these ticks in the solver's words.
        moved_rps: demand that goes elsewhere than before, what is newly shed or no longer shed included.
        before, after: all traffic.
        shares: of every route and engine that has or had some, by route and engine.
        engines: by id.
        sheds: of every route that sheds before or after.
        rerouted_rps: of what is served after, how much goes to another engine than before.
        notes: what to know of the question itself, such as that an engine to be drained is out already.
    """

    version: int
    tick_ms: int
    edits: tuple[str, ...]
    inputs_proved: bool
    ticks: int
    settled: bool
    sentence: str
    moved_rps: float
    before: Totals
    after: Totals
    shares: tuple[ShareChange, ...]
    engines: tuple[EngineChange, ...]
    sheds: tuple[ShedChange, ...] = ()
    rerouted_rps: float = 0.0
    notes: tuple[str, ...] = ()


def what_if(again: Again, edits: Sequence[Edit], settings: SolverSettings, lp: LinearSolver, *, proved: bool) -> WhatIf:
    """Solve the tick with the edits made.

    Raises:
        InvalidInputError: the tick only held what stood before, so that there is nothing to compare with, but where
            it held since it was frozen, and that is lifted; or that is lifted and it was not frozen.
    """
    before = _standing(again, edits, settings, lp)
    problem, snapshot = edited(again.problem, edits), remembered(again.tick.snapshot, edits)
    commit, ticks, settled, after = again.tick.snapshot.commit, 0, False, before
    while not settled and ticks < MAX_TICKS:
        ticks += 1
        stamp = TickStamp(commit.epoch, commit.version + ticks, commit.tick_ms)
        after = solve_tick(problem, snapshot, settings, lp, stamp)
        settled = after.record.moved_rps <= SETTLED * max(after.record.demand_rps, 1e-9)
        kept = replace(after.snapshot.commit, remembered=snapshot.commit.remembered)
        snapshot = Snapshot(kept, after.snapshot.routes)
    was, now = _at_its_demand(before), _at_its_demand(after)
    return WhatIf(
        version=commit.version,
        tick_ms=commit.tick_ms,
        edits=tuple(edit.sentence for edit in edits),
        inputs_proved=proved,
        ticks=ticks,
        settled=settled,
        sentence=after.snapshot.commit.sentence,
        moved_rps=moved_rps(was, now),
        before=_totals(before),
        after=_totals(after),
        shares=_shares(was, now),
        engines=_engines(before, after),
        sheds=_sheds(was, now),
        rerouted_rps=_rerouted_rps(was, now),
        notes=notes_on(again.problem, edits),
    )


def _standing(again: Again, edits: Sequence[Edit], settings: SolverSettings, lp: LinearSolver) -> Tick:
    """Give the tick to compare with."""
    commit, problem = again.tick.snapshot.commit, again.problem
    lifted = any(edit.unfreeze for edit in edits)
    if again.tick.decision is not None:
        if lifted:
            raise InvalidInputError("what-if", (f"--unfreeze: nothing is frozen at version {commit.version}",))
        return again.tick
    lost = lost_telemetry(problem) or lost_profiles(problem)
    if problem.frozen and lifted and lost is None:
        stamp = TickStamp(commit.epoch, commit.version, commit.tick_ms)
        kept = replace(settings, policy="last_good")
        return solve_tick(replace(problem, frozen=""), again.tick.snapshot, kept, lp, stamp)
    if lifted and lost is not None:
        raise InvalidInputError("what-if", (f"it would still be HELD without the freeze: {lost}",))
    how = "; --unfreeze says what would come if that ended now" if problem.frozen else "; --at asks of a tick before it"
    raise InvalidInputError("what-if", (f"nothing was decided in that tick: {commit.sentence}{how}",))


def _at_its_demand(tick: Tick) -> Snapshot:
    """Give a tick's weights at the demand that it solved for; a record that stands still has that of an older one."""
    assert tick.decision is not None  # noqa: S101 - solve_tick always decides, and the caller has looked
    demand = {row.route: row.demand_rps for row in tick.decision.layout.rows}
    routes = (replace(route, demand_rps=demand[route.route]) for route in tick.snapshot.routes)
    return Snapshot(tick.snapshot.commit, tuple(routes))


def _totals(tick: Tick) -> Totals:
    assert tick.decision is not None  # noqa: S101 - solve_tick always decides, and the caller has looked
    found = score(tick.decision.layout, tick.decision.plan)
    return Totals(
        mean_ms=found.end_to_end_ms,
        network_ms=found.network_ms,
        engine_ms=found.engine_ms,
        demand_rps=tick.record.demand_rps,
        shed_rps=found.shed_rps,
        overloaded_rps=found.overloaded_rps,
        capacity_rps=tick.record.capacity_rps,
    )


def _shares(before: Snapshot, after: Snapshot) -> tuple[ShareChange, ...]:
    old, new = ({str(route.route): route for route in each.routes} for each in (before, after))
    found: list[ShareChange] = []
    for name in sorted(old.keys() | new.keys()):
        one, other = _of(old.get(name)), _of(new.get(name))
        for engine_id in sorted(one.keys() | other.keys()):
            (ppm, rps), (ppm_now, rps_now) = one.get(engine_id, (0, 0.0)), other.get(engine_id, (0, 0.0))
            found.append(ShareChange(name, engine_id, ppm, ppm_now, rps, rps_now))
    return tuple(found)


def _of(route: RouteWeights | None) -> dict[str, tuple[int, float]]:
    if route is None:
        return {}
    served = route.demand_rps * (1.0 - route.shed_ratio)
    return {t.engine_id: (t.weight_ppm, served * t.weight_ppm / PPM) for t in route.targets if t.weight_ppm}


def _sheds(before: Snapshot, after: Snapshot) -> tuple[ShedChange, ...]:
    old, new = (
        {str(r.route): (r.demand_rps * r.shed_ratio, r.demand_rps) for r in each.routes} for each in (before, after)
    )
    found: list[ShedChange] = []
    for name in sorted(old.keys() | new.keys()):
        (was, asked), (now, asks) = old.get(name, (0.0, 0.0)), new.get(name, (0.0, 0.0))
        if max(was, now) > 0.0:
            found.append(ShedChange(name, was, now, asked, asks))
    return tuple(found)


def _rerouted_rps(before: Snapshot, after: Snapshot) -> float:
    """Give how much of what is served after goes to another engine than before."""
    old, rps = {str(route.route): _of(route) for route in before.routes}, 0.0
    for route in after.routes:
        was, now = old.get(str(route.route), {}), _of(route)
        nothing = (0, 0.0)
        if was and now:
            apart = sum(abs(now.get(e, nothing)[0] - was.get(e, nothing)[0]) for e in sorted(was.keys() | now.keys()))
            rps += route.demand_rps * (1.0 - route.shed_ratio) * apart / (2 * PPM)
    return rps


def _engines(before: Tick, after: Tick) -> tuple[EngineChange, ...]:
    one, other = _loads(before), _loads(after)
    nothing = (0.0, 0.0)
    return tuple(
        EngineChange(name, one.get(name, nothing)[0], other.get(name, nothing)[0], *_capacities(one, other, name))
        for name in sorted(one.keys() | other.keys())
    )


def _capacities(
    one: dict[str, tuple[float, float]], other: dict[str, tuple[float, float]], name: str
) -> tuple[float, float]:
    return one.get(name, (0.0, 0.0))[1], other.get(name, (0.0, 0.0))[1]


def _loads(tick: Tick) -> dict[str, tuple[float, float]]:
    """Give the planned load and the effective capacity of each engine, in requests of work 1."""
    assert tick.decision is not None  # noqa: S101 - as above
    load: dict[str, float] = {}
    work = {row.route: row.work for row in tick.decision.layout.rows}
    for route in _at_its_demand(tick).routes:
        for engine_id, (_, rps) in _of(route).items():
            load[engine_id] = load.get(engine_id, 0.0) + rps * work[route.route]
    engines = tick.decision.layout.problem.engines
    return {e.engine_id: (load.get(e.engine_id, 0.0), e.capacity_rps) for e in engines}
