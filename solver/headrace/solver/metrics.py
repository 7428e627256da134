"""What a solver counts: served where `solver.metrics_port` says, by `headrace.infra.metrics`. Every label is bounded.

`status`, `rung`, `reason`, `kind` and `protection` are the words of the records; `tier` is 0 to 9. A shadow counts the
same under `headrace_shadow_`. What is of one tick (gauges) is of the newest; what adds up is a counter.
"""

import math
from collections import Counter
from typing import Final

from headrace.schemas.metric_table import Counts, Metric
from headrace.schemas.weights import Reason
from headrace.solver.core.inputs.silence import hearing_of
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.core.problem import Problem
from headrace.solver.core.shed_of import shed_of
from headrace.solver.core.tick import Tick
from headrace.solver.settings import SolverSettings

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

KEPT: Final = ("leads", "snapshot_timestamp_seconds", "signal_timestamp_seconds")
"""Gauges that stay when another solver leads: of instants the newest counts, whoever shows it."""
OUTCOMES: Final = ("COMMITTED", "FAILED", "FENCED", "UNSOUND")

TABLE: Final = (
    Metric("leads", "gauge", (), "1 where this solver holds the pen, 0 where it stands by"),
    Metric("ticks_total", "counter", ("status", "rung"), "Ticks by what came of them and the rung that answered"),
    Metric("publishes_total", "counter", ("outcome",), "Snapshots by what the broker said; FENCED: another took over"),
    Metric("solve_faults_total", "counter", (), "Solves that raised: a fault of this program, told in its log"),
    Metric("stage_seconds", "histogram", ("stage",), "Time of a tick: inputs, build, solve, check, publish", _SECONDS),
    Metric("snapshot_epoch", "gauge", (), "Epoch of the newest snapshot"),
    Metric("snapshot_version", "gauge", (), "Version of the newest snapshot"),
    Metric("snapshot_timestamp_seconds", "gauge", (), "Tick time of the newest snapshot; time() less it is its age"),
    Metric("snapshot_routes", "gauge", (), "Routes of the newest snapshot"),
    Metric("demand_rps", "gauge", (), "Demand that was planned for"),
    Metric("capacity_rps", "gauge", (), "Effective capacity of all engines"),
    Metric("utilisation", "gauge", (), "Planned load, as a share of effective capacity"),
    Metric("shed_rps", "gauge", ("tier",), "Demand that is refused for lack of capacity, or for a pin"),
    Metric("moved_rps_total", "counter", (), "Traffic that ticks sent elsewhere than before, added up"),
    Metric("gap", "gauge", (), "Certified gap to the best possible cost, as a share of it"),
    Metric("retry_ratio", "gauge", (), "Least retry budget of a route in use, retries per request"),
    Metric("engines", "gauge", (), "Engines in the fleet"),
    Metric("excluded_engines", "gauge", ("reason",), "Engines that may take no traffic at all"),
    Metric(
        "protected_engines", "gauge", ("protection",), "Engines that a protection gave less, or more, than they say"
    ),
    Metric("stale_inputs", "gauge", ("kind",), "Inputs not heard of in time: engine, demand, link; ageing: fading"),
    Metric("signal_timestamp_seconds", "gauge", (), "Event time of the newest signal of any engine"),
    Metric("coverage_least", "gauge", (), "Least coverage of the window of an engine that is heard and not drained"),
    Metric("overrides", "gauge", ("kind",), "Operators' overrides in force"),
    Metric("override_age_seconds", "gauge", ("kind",), "How long the oldest override in force has stood"),
    Metric("unusable_records_total", "counter", (), "Records of the input topics that cannot be used"),
)
"""Every metric there is: the page that documents them, the dashboards and the alerts are checked against this."""


def count_start(counts: Counts) -> None:
    """Show what has not happened yet as 0, so that its first time is seen as a rise."""
    counts.show("leads", 0)
    for outcome in OUTCOMES:
        counts.add("publishes_total", 0, outcome)


def count_standing_by(counts: Counts) -> None:
    """Take back what was shown of the last tick: another solver shows its own now."""
    for each in TABLE:
        if each.kind == "gauge" and each.labels:
            counts.show_all(each.name, {})
        elif each.kind == "gauge" and each.name not in KEPT:
            counts.show(each.name, math.nan)


def count_inputs(counts: Counts, view: StateView, problem: Problem, settings: SolverSettings, now_ms: int) -> None:
    """Show what a tick was given."""
    hearing = hearing_of(view, settings, now_ms)
    out = Counter(engine.exclusion.reason for engine in problem.engines if engine.exclusion is not None)
    meant = {e.engine_id for e in problem.engines if e.exclusion is None or e.exclusion.reason is not Reason.DRAINED}
    heard = [s for s in view.engines.values() if s.engine_id in meant and hearing.stale(s) is None]
    counts.show("engines", len(problem.engines))
    counts.show_all("excluded_engines", {(reason.value,): float(count) for reason, count in out.items()})
    stale = {
        "engine": out[Reason.STALE],
        "ageing": sum(0.0 < hearing.left(state) < 1.0 for state in view.engines.values()),
        "demand": sum(row.demand_held for row in problem.rows),
        "link": sum(seconds is None for seconds in problem.network_s.values()),
    }
    counts.show_all("stale_inputs", {(kind,): float(count) for kind, count in stale.items()})
    counts.show("signal_timestamp_seconds", (now_ms - problem.lag_ms) / 1000 if view.engines else math.nan)
    counts.show("coverage_least", min((state.coverage for state in heard), default=math.nan))
    standing = [override for override in view.overrides.values() if override.holds(now_ms)]
    kinds = Counter(override.kind.value for override in standing)
    counts.show_all("overrides", {(kind,): float(count) for kind, count in kinds.items()})
    since = {kind: min(o.made_ms for o in standing if o.kind.value == kind) for kind in kinds}
    counts.show_all("override_age_seconds", {(kind,): (now_ms - ms) / 1000 for kind, ms in since.items()})


def count_tick(counts: Counts, tick: Tick, took_us: int, publish_us: int) -> None:
    """Count a tick that was published; `took_us` is all that its decision took."""
    commit, record, routes = tick.snapshot.commit, tick.record, tick.snapshot.routes
    counts.add("ticks_total", 1, record.status.value, record.rung)
    stages = {"build": record.build_us, "solve": record.solve_us, "check": record.check_us}
    stages |= {"inputs": max(0, took_us - sum(stages.values())), "publish": publish_us}
    for stage, us in stages.items():
        counts.observe("stage_seconds", us / 1e6, stage)
    counts.show("snapshot_epoch", commit.epoch)
    counts.show("snapshot_version", commit.version)
    counts.show("snapshot_timestamp_seconds", commit.tick_ms / 1000)
    counts.show("snapshot_routes", len(routes))
    shed: dict[tuple[str, ...], float] = {}
    for route, rps in shed_of(tick):
        key = (str(route.tier),)
        shed[key] = shed.get(key, 0.0) + rps
    counts.show_all("shed_rps", shed)
    acted = Counter(each.protection for each in commit.protections)
    counts.show_all("protected_engines", {(name,): float(count) for name, count in acted.items()})
    counts.show("retry_ratio", min((r.retry_ratio for r in routes if r.demand_rps > 0.0), default=math.nan))
    if tick.decision is None:
        return  # it only held: what was planned before still stands
    counts.add("moved_rps_total", record.moved_rps)
    counts.show("demand_rps", record.demand_rps)
    counts.show("capacity_rps", record.capacity_rps)
    counts.show("utilisation", math.nan if record.utilisation is None else record.utilisation)
    counts.show("gap", math.nan if record.gap is None else record.gap)
