"""Numbers are of the unit that they should be: nothing is a thousand times too large or too small."""

from collections.abc import Iterator, Mapping
from statistics import median

from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.mending import REFIT, how_to_publish, why
from headrace.infra.doctor.core.overload import is_overloaded
from headrace.infra.doctor.core.picture import Picture
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.signals import Metric
from headrace.schemas.state import EngineState, LatencyState
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.settings import ClassSettings
from headrace.streams.core.mapping.reading import Field
from headrace.streams.core.trial.advice import PLAUSIBLE_S

FOLLOWS_FROM = ("brokers",)

FAR = 100.0
"""So many times more or less than a fixed number that somebody states is no hardware."""
_FACTORS = (1e3, 1e-3, 1e6, 1e-6)
NEAR = 2.0
"""A wrong unit is off by one of these factors, this much more or less; by 100 times, an engine is slow."""
RTT_S = (5e-6, 3.0)
_OF = {Metric.TTFT: Field.TTFT, Metric.TBOT: Field.TBOT, Metric.E2E: Field.E2E, Metric.QUEUE: Field.QUEUE}


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each number that cannot be of its unit."""
    view = picture.view
    if view is None:
        return
    for spec in view.specs.values():
        profile = view.profiles.get(spec.profile_id.encode())
        state = view.engines.get(spec.key)
        if state is not None:
            yield from _latencies(picture, state, profile)
        if profile is not None:
            yield from _capacity(spec, profile)
    for profile in view.profiles.values():
        yield from _profile(profile)
    yield from _round_trips(picture, view)
    yield from _demand(view, picture.setup.solver.classes)


def _latencies(picture: Picture, state: EngineState, profile: LatencyProfile | None) -> Iterator[Finding]:
    for each in state.latencies:
        field = _OF.get(each.metric)
        if each.mean_s is None or each.mean_s <= 0.0 or field is None:
            continue
        low, high = PLAUSIBLE_S[field]
        expected = _profiled(profile, each.metric) or _of_others(picture, state, each)
        off = None if expected is None else unit_factor(each.mean_s, *expected)
        if off is None and low <= each.mean_s <= high:
            continue
        if each.mean_s > low and each.metric is not Metric.TBOT and is_overloaded(picture, state.engine_id):
            continue  # a queue is as long as it is; the check `load` tells of it
        name, bound = each.metric.lower(), high if each.mean_s > high else low
        is_high = each.mean_s > (high if off is None or expected is None else expected[1])
        unit = "milliseconds where seconds are meant" if is_high else "seconds where milliseconds were meant"
        beside = (
            f"{low:g} to {high:g} s is plausible"
            if off is None or expected is None
            else f"{off:g} times the {expected[0]:g} to {expected[1]:g} s of its profile or of its like"
        )
        yield fault(
            state.engine_id,
            f"{state.engine_id}: {name} of {each.model} is {each.mean_s:g} s; {beside}",
            f"most likely {unit}: the unit in its mapping (fields.{name}, unit) or in its publisher is wrong, and the "
            "solver takes it for an outlier, or trims its profile",
            *how_to_publish(picture, state.engine_id),
            value=each.mean_s,
            bound=bound if off is None or expected is None else expected[1],
        )


def unit_factor(value: float, low: float, high: float) -> float | None:
    """Give by which factor of units a value is off what is expected of it; None where by none: it is a slow one."""
    for factor in _FACTORS:
        if factor * low / NEAR <= value <= factor * high * NEAR and not low / NEAR <= value <= high * NEAR:
            return factor
    return None


def _profiled(profile: LatencyProfile | None, metric: Metric) -> tuple[float, float] | None:
    curve = () if profile is None else {Metric.TTFT: profile.ttft_s, Metric.TBOT: profile.tbot_s}.get(metric, ())
    return (min(curve), max(curve)) if curve and min(curve) > 0.0 else None


def _of_others(picture: Picture, state: EngineState, of: LatencyState) -> tuple[float, float] | None:
    """Give what other engines say of the same; None where none does."""
    view = picture.view
    told = [
        each.mean_s
        for other in (view.engines.values() if view is not None else ())
        for each in other.latencies
        if other.engine_id != state.engine_id
        and (each.model, each.metric) == (of.model, of.metric)
        and each.mean_s is not None
        and each.mean_s > 0.0
    ]
    return (median(told), median(told)) if told else None


def _capacity(spec: EngineSpec, profile: LatencyProfile) -> Iterator[Finding]:
    stated = spec.capacity_rps_per_replica
    if stated is None or profile.capacity_rps / FAR <= stated <= profile.capacity_rps * FAR:
        return
    yield fault(
        spec.engine_id,
        f"{spec.engine_id}: capacity_rps_per_replica is {stated:g}; its profile {spec.profile_id} was measured to "
        f"{profile.capacity_rps:g} RPS",
        "it is given far more, or far less, than it serves; the field is requests a second of one replica",
        "headrace fleet list",
        "headrace fleet apply fleet.toml",
        value=stated,
        bound=profile.capacity_rps,
    )


def _profile(profile: LatencyProfile) -> Iterator[Finding]:
    for name, curve, field in (("ttft_s", profile.ttft_s, Field.TTFT), ("tbot_s", profile.tbot_s, Field.TBOT)):
        low, high = PLAUSIBLE_S[field]
        # An idle engine's value is the one that no queue stretches.
        if curve and not low <= curve[0] <= high:
            yield fault(
                profile.profile_id,
                f"profile {profile.profile_id}: {name} of an idle engine is {curve[0]:g} s; {low:g} to {high:g} s is "
                "plausible",
                "its load test's columns are of another unit than they say (`headrace profile fit --form`)",
                *REFIT,
                value=curve[0],
                bound=high,
            )


def _round_trips(picture: Picture, view: StateView) -> Iterator[Finding]:
    low, high = RTT_S
    for link in view.links.values():
        rtt_s = link.smoothed_s
        if rtt_s is not None and rtt_s > 0.0 and not low <= rtt_s <= high:
            yield fault(
                f"{link.from_cluster}|{link.to_site}",
                f"round trip {link.from_cluster} to {link.to_site} is {rtt_s:g} s; {low:g} to {high:g} s is plausible",
                "most likely milliseconds where rtt_s is in seconds: that site gets no traffic, or all of it",
                why(picture, link.from_cluster, link.to_site),
                value=rtt_s,
                bound=high,
            )


def _demand(view: StateView, classes: Mapping[str, ClassSettings]) -> Iterator[Finding]:
    capacity = 0.0
    for spec in view.specs.values():
        profile = view.profiles.get(spec.profile_id.encode())
        each = spec.capacity_rps_per_replica or (0.0 if profile is None else profile.capacity_rps)
        state = view.engines.get(spec.key)
        capacity += each * ((state.replicas_ready if state is not None else None) or 1)
    for asked in view.demands.values():
        rps, work = asked.smoothed_rps, classes[asked.request_class].work if asked.request_class in classes else 1.0
        if rps is not None and capacity > 0.0 and rps * work > FAR * capacity:
            yield fault(
                str(asked.route),
                f"demand of {asked.route} is {rps:g} RPS; the whole fleet serves {capacity:g}",
                "most likely a counter that is published as if it were of one period: publish the difference",
                "headrace tail decisions --no-follow --since 1m",
                value=rps,
                bound=FAR * capacity,
            )
