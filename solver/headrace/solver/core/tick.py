"""A tick: (problem, previous snapshot, settings, linear solver, stamp) -> the next snapshot and its record. Pure.

Whatever happens there is a snapshot: where the policy fails, the last good weights restricted to the engines that are
still there (HELD), and where there are none, capacity-proportional ones (PROPORTIONAL). The rung is in the record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import is_not

import xxhash

from headrace.schemas.assembly import summands_of
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.digest import Summands, add, remove, to_text
from headrace.schemas.weights import (
    EngineMemory,
    Protected,
    RouteWeights,
    Snapshot,
    SnapshotCommit,
    SnapshotMode,
    SnapshotStatus,
)
from headrace.solver.core.answer.apportion import moved_share
from headrace.solver.core.answer.held import held_routes
from headrace.solver.core.answer.pinned import held_to_pins, pins_told
from headrace.solver.core.answer.records import solve_record
from headrace.solver.core.answer.routes import RouteWriter
from headrace.solver.core.answer.shed_by_pins import kept_words, shed_by_pins
from headrace.solver.core.effective import BEFORE
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.policies import policy_named
from headrace.solver.core.problem import Problem
from headrace.solver.core.program.dot import dot
from headrace.solver.core.program.layout import Layout, lay_out
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.plan_memory import with_score_errors
from headrace.solver.core.protections import protect, worth_remembering
from headrace.solver.core.spare import sheds_less, to_spare
from headrace.solver.settings import ClassSettings, SolverSettings

LADDER = ("last_good", "capacity_weighted")
"""Policies that are tried after the configured one, in this order; the last never fails."""
_RULES = (
    "policy",
    "move_price_ms",
    "stay_within",
    "segments",
    "engine_cost",
    "ageing_after_ms",
    "expired_after_ms",
    "missed_ageing",
    "missed_expired",
    "lost_after_ms",
    "degraded_factor",
    "headroom_load",
    "headroom_price_ms",
    "trim_power",
    "trim_period_ms",
    "trim_bound",
    "outlier_ratio",
    "outlier_mads",
    "outlier_half_ms",
    "outlier_recovery_ms",
    "outlier_max_share",
    "panic_share",
    "cold_start_share",
    "cold_ramp_ms",
    "measured_capacity_least",
    "measured_capacity_probe",
    "backlog_drain_ms",
    "proportional_gain",
    "pid_gain",
    "pid_integral",
    "pid_max_step",
    "retry_ratio_max",
    "retry_load_low",
    "retry_load_high",
)
"""Settings that decide about weights, beside the classes; the worker's own are not among them."""
_LATER_RULES = (
    "sift_above",
    "anchors",
    "failover_spare",
    "surge_load",
    "error_ratio",
    "error_tolerated",
    "error_once_in",
)
"""Settings that came later; they count only where they are not as they were before they came."""
_STEERING_RULES = ("probe_share", "load_spread", "refine_above", "max_step", "step_price_ms")
"""The same, of those that steer how the program explores and moves."""


NOTHING_RECKONED = Summands()


def standing_still() -> int:
    """Give 0: the stop watch of a run whose timings do not matter, such as a replay."""
    return 0


@dataclass(frozen=True, slots=True)
class TickStamp:
    """Which tick this is, and when.

    Attributes:
        epoch: writer generation.
        version: version of the snapshot to make; above the previous one's.
        now_ms: tick time; the snapshot is valid from here for `ttl_ms`.
        elapsed_us: stop watch that the record's phase timings are read from; nothing else depends on it.
        mode: whether data planes may route by it.
    """

    epoch: int
    version: int
    now_ms: int
    elapsed_us: Callable[[], int] = standing_still
    mode: SnapshotMode = SnapshotMode.LIVE


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan behind a tick, kept for explaining it."""

    layout: Layout
    plan: Plan
    settings: SolverSettings


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick made.

    Attributes:
        snapshot: every route, checked by the caller with `check_snapshot` before it is published.
        changed: keys of the routes that differ from the previous snapshot; all of them in an epoch's first tick.
        removed: keys of the previous snapshot's routes that no longer exist: to be written as tombstones.
        record: the decision record; `publish_us` is 0, for the caller to fill in.
        decision: what `explain` needs; None for a tick that only held.
        summands: parts of the digest that were reckoned for it, for `check_snapshot`.
    """

    snapshot: Snapshot
    changed: frozenset[bytes]
    removed: frozenset[bytes]
    record: SolveRecord
    decision: Decision | None = None
    summands: Summands = NOTHING_RECKONED


def solve_tick(
    problem: Problem, previous: Snapshot | None, settings: SolverSettings, lp: LinearSolver, stamp: TickStamp
) -> Tick:
    """Make the next snapshot.

    Args:
        problem: rows, engines, round trips and profiles, already valid; empty sequences are allowed.
        previous: the last good snapshot, or None at the first start. A new epoch passes the old epoch's snapshot, so
            that sessions stay on their warm engines; every route is then written again.
        settings: the solver's; `policy` is the first rung.
        lp: solves the linear programs.
        stamp: epoch, version and time of this tick.

    Raises:
        InvalidInputError: there is no policy of that name.
    """
    started = stamp.elapsed_us()
    guarded = protect(problem, previous, settings, stamp.now_ms)
    layout = lay_out(guarded.problem, previous)
    laid_out = stamp.elapsed_us()
    plan = _descend(layout, settings, lp)
    if spared := to_spare(guarded, layout, plan):
        kinder = protect(problem, previous, settings, stamp.now_ms, spared)
        other = lay_out(kinder.problem, previous)
        if sheds_less(found := _descend(other, settings, lp), plan):
            guarded, layout, plan = kinder, other, found
    planned = stamp.elapsed_us()
    writer = RouteWriter(layout, plan, settings)
    afresh = previous is None or previous.commit.epoch != stamp.epoch
    routes = writer.write(stamp.epoch, stamp.version, afresh=afresh)
    moved_rps = dot(moved_share(layout, writer.weights), layout.requests(layout.demand))
    remembered = worth_remembering(with_score_errors(guarded, layout, plan))
    protections = (*guarded.protections, *pins_told(layout))
    told = _Told(plan.status, _said(layout, plan, moved_rps, problem), remembered, protections)
    draft = _Draft(problem, settings, stamp, told, routes)
    closed = _close(draft, previous, layout.previous, layout.row_key)
    snapshot = closed.snapshot
    record = solve_record(layout, plan, snapshot.commit, moved_rps)
    timed = replace(
        record, build_us=laid_out - started, solve_us=planned - laid_out, check_us=stamp.elapsed_us() - planned
    )
    decision = Decision(layout, plan, settings)
    return Tick(snapshot, closed.changed, closed.removed, timed, decision, closed.summands)


def hold_tick(problem: Problem, previous: Snapshot, settings: SolverSettings, stamp: TickStamp, sentence: str) -> Tick:
    """Make a snapshot whose routes are the previous ones, valid for another `ttl_ms`, status HELD.

    For the case that nothing is known any more (all telemetry lost): not knowing is no reason to move traffic, but for
    that of engines which are known to be gone (`held`). In a new epoch the routes are written again under it. What they
    say of demand is as old as they are, whatever was heard of it since.
    """
    routes = held_routes(problem, previous, stamp.epoch, stamp.version)
    told = _Told(SnapshotStatus.HELD, sentence, previous.commit.remembered, previous.commit.protections)
    known = replace(problem, demand_until_ms=previous.commit.demand_until_ms)
    draft = _Draft(known, settings, stamp, told, routes)
    old = {route.key: route for route in previous.routes}
    closed = _close(draft, previous, old, [route.key for route in routes])
    record = solve_record(None, None, closed.snapshot.commit, 0.0)
    return Tick(closed.snapshot, closed.changed, closed.removed, record, summands=closed.summands)


def policy_hash(settings: SolverSettings) -> str:
    """Give 16 hex digits over every setting that a decision depends on: the same hash, the same rules."""
    classes = sorted((name, c.tier, c.requires, c.residency) for name, c in settings.classes.items())
    rules = [(name, getattr(settings, name)) for name in _RULES]
    later = _LATER_RULES + _STEERING_RULES
    rules += [(name, v) for name in later if (v := getattr(settings, name)) != getattr(BEFORE, name)]
    work = sorted((name, c.work) for name, c in settings.classes.items() if c.work != ClassSettings().work)
    rules += [("work", work)] if work else []
    return xxhash.xxh3_64_hexdigest(repr((rules, classes)).encode())


def _said(layout: Layout, plan: Plan, moved_rps: float, problem: Problem) -> str:
    kept = kept_words(layout, plan, shed_by_pins(layout, plan))
    unknown = sum(bool(engine.latency_sentence) for engine in problem.engines)
    told = f"; latency unknown of {unknown} of {len(problem.engines)} engines" if unknown else ""
    said = f"{plan.sentence}; {kept}" if kept else plan.sentence
    return f"{said}; {moved_rps:.1f} RPS moved{told}"


def _descend(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan:
    failures: list[str] = []
    for name in (settings.policy, *LADDER):
        plan = policy_named(name)(layout, settings, lp)
        if isinstance(plan, Plan):
            plan = held_to_pins(layout, plan)
            return replace(plan, sentence="; ".join((*failures, plan.sentence))) if failures else plan
        failures.append(f"{name} failed: {_reason(plan)}")
    raise AssertionError(f"capacity_weighted never fails, and did: {failures}")


def _reason(failed: Failed) -> str:
    return failed.reason


@dataclass(frozen=True, slots=True)
class _Told:
    """What a commit says beside its dates."""

    status: SnapshotStatus
    sentence: str
    remembered: tuple[EngineMemory, ...]
    protections: tuple[Protected, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A snapshot before it is dated and sealed."""

    problem: Problem
    settings: SolverSettings
    stamp: TickStamp
    told: _Told
    routes: tuple[RouteWeights, ...]


@dataclass(frozen=True, slots=True)
class _Closed:
    """A snapshot that is dated and sealed, and what of it is new."""

    snapshot: Snapshot
    changed: frozenset[bytes]
    removed: frozenset[bytes]
    summands: Summands


def _close(
    draft: _Draft, previous: Snapshot | None, old: Mapping[bytes, RouteWeights], keys: Sequence[bytes]
) -> _Closed:
    """Seal a draft with its commit; the digest is brought forward from the previous one by what changed."""
    new = dict(zip(keys, draft.routes, strict=True))
    changed = frozenset(compress(keys, map(is_not, map(old.get, keys), draft.routes)))
    removed = frozenset(old.keys() - new.keys())
    # Where more has changed than not, it is less to add all up than to bring the old sum forward.
    anew = previous is None or 2 * len(changed) > len(new)
    came, went, total = summands_of({key: new[key] for key in sorted(new if anew else changed)}), dict[bytes, int](), 0
    if previous is not None and not anew:
        went = summands_of({key: old[key] for key in sorted(removed | (changed & old.keys()))})
        total = int(previous.commit.digest, 16)
    for part in went.values():
        total = remove(total, part)
    for part in came.values():
        total = add(total, part)
    settings, stamp = draft.settings, draft.stamp
    commit = SnapshotCommit(
        epoch=stamp.epoch,
        version=stamp.version,
        mode=stamp.mode,
        status=draft.told.status,
        sentence=draft.told.sentence,
        tick_ms=stamp.now_ms,
        period_ms=settings.period_ms,
        valid_until_ms=stamp.now_ms + settings.ttl_ms,
        route_count=len(draft.routes),
        changed=tuple(key.decode() for key in sorted(changed)),
        digest=to_text(total),
        policy=settings.policy,
        policy_hash=policy_hash(settings),
        inputs=draft.problem.inputs,
        remembered=draft.told.remembered,
        protections=draft.told.protections,
        demand_until_ms=draft.problem.demand_until_ms if settings.surge_load > 0.0 else None,
    )
    return _Closed(Snapshot(commit, draft.routes), changed, removed, Summands(came, went))
