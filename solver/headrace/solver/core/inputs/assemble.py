"""View of the state -> Problem: who may take traffic at `now_ms`, with how much capacity, and what is demanded.

    ready   = replicas_ready, else replicas_reporting, else 1 (named)
    factor  = what silence leaves of it x (degraded_factor if DEGRADED else 1)
    rows    = clusters seen x models of the fleet x classes configured, and every route that was demanded
    demand  = smoothed_rps, the last known one held while its gateway is silent; 0 where it was never measured

No telemetry is not no demand: a gateway that falls silent goes on sending, and others moved onto its capacity would
meet it there. An engine without a known profile has a flat one (`stand_in`), if its capacity is given.

The same records give the same problem whatever order they came in. `silence` says when an engine counts as silent; it
is judged at the tick's own time, so that a replay judges the same.

A round trip is kept as it was last measured however long the probes are silent: distance does not change because
nobody looks. All probes lost is None; a link never measured is absent.
"""

from collections.abc import Iterator

from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.ids import RouteKey
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind, override_key
from headrace.schemas.signals import Health
from headrace.schemas.state import DemandState, EngineState, Invalid, NetworkState
from headrace.schemas.weights import PPM, Reason
from headrace.solver.core.inputs.measure import measure, outcomes, throughput
from headrace.solver.core.inputs.pooled_window import pooled_window
from headrace.solver.core.inputs.silence import Hearing, hearing_of
from headrace.solver.core.inputs.stand_in import stand_in
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.core.problem import Engine, Exclusion, Pin, Problem, Row
from headrace.solver.settings import ClassSettings, SolverSettings

_UNCONFIGURED = (ClassSettings().tier, (), (), ClassSettings().work)
_SILENT = (Reason.STALE, Reason.NO_STATE)
_KNOWN_OUT = (Reason.DRAINED, Reason.NO_PROFILE)


def assemble(view: StateView, settings: SolverSettings, now_ms: int) -> Problem:
    """Build the tick's problem from the newest records; never raises, since every record in a view is sound.

    Args:
        view: the newest sound record of each key.
        settings: staleness bounds, the share left to a degraded engine, the request classes.
        now_ms: the tick's time; silence is measured against it, and a signal from its future counts as fresh,
            unless it is so far ahead that its clock must be wrong.
    """
    hearing = hearing_of(view, settings, now_ms)
    return Problem(
        rows=tuple(_rows(view, settings, hearing)),
        engines=tuple(_engine(view, spec, settings, hearing) for _, spec in sorted(view.specs.items())),
        network_s=dict(_network(view)),
        profiles=_profiles(view),
        inputs=view.inputs,
        lag_ms=hearing.lag_ms,
        demand_until_ms=hearing.demand_until_ms,
        frozen=_frozen(view, now_ms),
        pins=_pins(view, now_ms),
    )


def lost_telemetry(problem: Problem) -> str | None:
    """Say that no engine that might serve is heard of any more; None while at least one is.

    Drained engines and those without a profile are out by the operator's own word, so they are not counted. With
    nobody heard of, weights computed from silence would refuse all traffic: the caller holds the last snapshot instead.
    """
    judged = [e for e in problem.engines if e.exclusion is None or e.exclusion.reason not in _KNOWN_OUT]
    if not judged or any(e.exclusion is None or e.exclusion.reason not in _SILENT for e in judged):
        return None
    return f"telemetry lost: none of {len(judged)} engines is heard of, the last weights stand"


def lost_profiles(problem: Problem) -> str | None:
    """Say that no engine can be used for want of a profile; None while at least one is out for another reason or in.

    One record too few in `profiles` is no reason to refuse all traffic, as no telemetry is none.
    """
    judged = [e for e in problem.engines if e.exclusion is None or e.exclusion.reason is not Reason.DRAINED]
    if not judged or any(e.exclusion is None or e.exclusion.reason is not Reason.NO_PROFILE for e in judged):
        return None
    missing = ", ".join(sorted({e.profile_id for e in judged})[:3])
    return f"profiles lost: none of {len(judged)} engines has a known one ({missing}), the last weights stand"


def _profiles(view: StateView) -> dict[str, LatencyProfile]:
    known = {profile.profile_id: profile for _, profile in sorted(view.profiles.items())}
    stand_ins = {
        spec.profile_id: stand_in(spec.profile_id, known.values(), spec.capacity_rps_per_replica)
        for _, spec in sorted(view.specs.items())
        if spec.profile_id not in known and spec.capacity_rps_per_replica is not None
    }
    return known | stand_ins


def _engine(view: StateView, spec: EngineSpec, settings: SolverSettings, hearing: Hearing) -> Engine:
    state, profile = view.engines.get(spec.key), view.profiles.get(spec.profile_id.encode())
    exclusion = _drained(view, spec, hearing.now_ms) or _exclusion(spec, state, profile, hearing)
    ready, ready_sentence = _ready(state)
    factor, sentences = _factor(state, settings, hearing)
    capacity = spec.capacity_rps_per_replica
    if capacity is None:
        capacity = 0.0 if profile is None else profile.capacity_rps
    window = None
    if exclusion is None and state is not None:
        known = view.windows.get(spec.key)
        window = pooled_window(state.latencies) if known is None else known
    return Engine(
        engine_id=spec.engine_id,
        site=spec.site,
        models=_each_once(spec.models),
        capabilities=_each_once(spec.capabilities),
        residency=_each_once(spec.residency),
        address=spec.address,
        profile_id=spec.profile_id,
        ready_replicas=ready,
        capacity_rps_per_replica=capacity,
        factor=factor,
        factor_sentence="; ".join([*ready_sentence, *sentences]),
        latency_sentence=_latency_sentence(spec) if profile is None else "",
        exclusion=exclusion,
        measured=None if state is None or window is None or profile is None else measure(state, window, profile),
        throughput=None if state is None or window is None else throughput(state, window),
        outcomes=None if exclusion or state is None or state.outcomes is None else outcomes(state.outcomes),
    )


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) < 2 else tuple(sorted(set(names)))


def _latency_sentence(spec: EngineSpec) -> str:
    return f"latency unknown: profile {spec.profile_id} is not known, taken to be as slow as the slowest one when full"


def _drained(view: StateView, spec: EngineSpec, now_ms: int) -> Exclusion | None:
    """Say that an operator has drained it for a while, with who, until when and why."""
    override = _override(view, OverrideKind.DRAIN, spec.engine_id, now_ms)
    return None if override is None else Exclusion(Reason.DRAINED, f"drained {override.words}")


def _frozen(view: StateView, now_ms: int) -> str:
    override = _override(view, OverrideKind.FREEZE, WHOLE_FLEET, now_ms)
    return "" if override is None else f"frozen {override.words}"


def _pins(view: StateView, now_ms: int) -> tuple[Pin, ...]:
    return tuple(
        Pin(o.cluster, o.target, (o.least_ppm or 0) / PPM, o.most_ppm / PPM, f"pinned to {o.share_words} {o.words}")
        for _, o in sorted(view.overrides.items())
        if o.kind is OverrideKind.PIN and o.holds(now_ms) and o.cluster is not None and o.most_ppm is not None
    )


def _override(view: StateView, kind: OverrideKind, target: str, now_ms: int) -> Override | None:
    override = view.overrides.get(override_key(kind, target)) if view.overrides else None
    return override if override is not None and override.holds(now_ms) else None


def _exclusion(
    spec: EngineSpec,
    state: EngineState | None,
    profile: LatencyProfile | None,
    hearing: Hearing,
) -> Exclusion | None:
    """Give the first reason that applies: the operator's word first, then silence, then what the engine says."""
    if spec.drain:
        return Exclusion(Reason.DRAINED, "drained by its operator")
    if profile is None and spec.capacity_rps_per_replica is None:
        return Exclusion(Reason.NO_PROFILE, f"profile {spec.profile_id} is not known, nor is its capacity given")
    if state is None or state.invalid is Invalid.NO_SIGNAL_YET:
        return Exclusion(Reason.NO_STATE, "no signal of it has been seen yet")
    stale = hearing.stale(state)
    if stale is not None:
        return Exclusion(Reason.STALE, stale)
    if state.invalid is not Invalid.NO:
        covered = f"{100 * state.coverage:.0f} % of its window is covered"
        return Exclusion(Reason.INVALID_STATE, f"its state is not valid: {state.invalid}, {covered}")
    if state.health is Health.UNHEALTHY:
        return Exclusion(Reason.UNHEALTHY, "says that it is unhealthy")
    if _ready(state)[0] == 0:
        desired = "" if state.replicas_desired is None else f" of {state.replicas_desired}"
        return Exclusion(Reason.NO_READY_REPLICA, f"0{desired} replicas are ready")
    return None


def _ready(state: EngineState | None) -> tuple[int, list[str]]:
    if state is None:
        return 0, []
    if state.replicas_ready is not None:
        return state.replicas_ready, []
    if state.replicas_reporting is not None:
        return state.replicas_reporting, ["ready replicas not measured: those reporting are counted"]
    return 1, ["ready replicas not measured: 1 is assumed"]


def _factor(state: EngineState | None, settings: SolverSettings, hearing: Hearing) -> tuple[float, list[str]]:
    if state is None:
        return 0.0, []
    factor, sentences = 1.0, list[str]()
    if state.health is Health.DEGRADED:
        factor *= settings.degraded_factor
        sentences.append(f"degraded: {100 * settings.degraded_factor:.0f} % of capacity")
    fade = hearing.left(state)
    if fade < 1.0:
        factor *= fade
        silent_s = hearing.silence_ms(state) / 1000
        sentences.append(f"silent for {silent_s:.1f} s: {100 * fade:.0f} % of capacity")
    return factor, sentences


def _rows(view: StateView, settings: SolverSettings, hearing: Hearing) -> Iterator[Row]:
    models = {model for spec in view.specs.values() for model in spec.models}
    clusters = {state.cluster for state in view.demands.values()}
    clusters.update(state.from_cluster for state in view.links.values())
    demand = {state.route: state for state in view.demands.values()}
    # Made in order, so that little is left to sort.
    kinds = [(m, k) for m in sorted(models) for k in sorted(settings.classes)]
    routes = dict.fromkeys(RouteKey(c, m, k) for c in sorted(clusters) for m, k in kinds)
    # A route nobody configured stays while its model is served, so that its next request finds weights; a model that
    # no engine serves is refused by name while it is asked for, and then forgotten.
    routes |= dict.fromkeys(
        route
        for route, state in demand.items()
        if route.model in models or (_demand_rps(state) is not None and not hearing.demand_expired(state))
    )
    wishes = {
        name: (asked.tier, tuple(sorted(set(asked.requires))), tuple(sorted(set(asked.residency))), asked.work)
        for name, asked in settings.classes.items()
    }
    # Twenty thousand of them at every tick: without a call of Python's each, and with names left out.
    from_ms, to_ms = hearing.demand_heard_ms
    for route in sorted(routes):
        tier, requires, residency, work = wishes.get(route[2], _UNCONFIGURED)
        state = demand.get(route)
        if state is None or state.invalid is Invalid.NO_SIGNAL_YET or not (rps := state.smoothed_rps):
            yield Row(route, tier, 0.0, requires, residency, False, work)  # noqa: FBT003
        else:
            held = not from_ms < state.last_signal_ms <= to_ms
            yield Row(route, tier, rps, requires, residency, held, work)


def _demand_rps(state: DemandState) -> float | None:
    """Give the demand that was last known, however long ago and of however little; None where it never was."""
    return None if state.invalid is Invalid.NO_SIGNAL_YET else state.smoothed_rps


def _network(view: StateView) -> Iterator[tuple[tuple[str, str], float | None]]:
    for _, state in sorted(view.links.items()):
        link = (state.from_cluster, state.to_site)
        if _all_lost(state):
            yield link, None
        elif state.smoothed_s is not None:
            yield link, state.smoothed_s


def _all_lost(state: NetworkState) -> bool:
    return state.lost_share is not None and state.lost_share >= 1.0
