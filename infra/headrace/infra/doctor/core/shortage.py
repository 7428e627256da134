"""Why the fleet no longer serves what is asked for: what has grown, fallen or is pinned, and by how many RPS each.

Before is while nothing was refused, of the last ten minutes: the middle of those ticks, since both a start and a growth
that takes a while have a beginning.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from headrace.infra.doctor.core.checks.overrides import named, take_back
from headrace.infra.doctor.core.mending import explain
from headrace.infra.doctor.core.overload import short_engines, stated_rps
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.weights_tail.shed_for import pins_with_room
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.ids import RouteKey
from headrace.schemas.overrides import OverrideKind
from headrace.schemas.signals import EngineSignals
from headrace.solver.core.inputs.assemble import assemble

GROWN = 1.1
"""A cluster that asks for so many times what it asked for before has grown."""
SHED_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that explains `rps` of what is lacking, and what looks into it or mends it."""

    rps: float
    sentence: str
    mend: tuple[str, ...]


def refuses(tick: SolveRecord) -> bool:
    """Say whether a tick refuses requests."""
    return tick.shed_rps > SHED_SHARE * tick.demand_rps


def causes(picture: Picture, now_ms: int) -> list[Cause]:
    """Give what explains that requests are refused, the most of it first; empty where nothing known has changed."""
    found = [*_fallen(picture), *_fewer(picture), *_out(picture, now_ms), *_grown(picture), *_pinned(picture, now_ms)]
    return sorted(found, key=lambda cause: -cause.rps)


def nearest_engine(picture: Picture, cluster: str | None) -> str | None:
    """Give the engine to which more replicas would help most: the nearest one of a route that refuses requests."""
    short = short_engines(picture)
    reach = [
        (target.engine_id in short, target.network_s, target.engine_id)
        for route in picture.routes.values()
        for target in route.targets
        if (route.cluster == cluster if cluster is not None else route.shed_ratio > 0.0)
    ]
    return min(reach)[2] if reach else None


def replicas_for(picture: Picture, engine_id: str, rps: float) -> int:
    """Give how many more replicas of an engine serve `rps`."""
    view = picture.view
    state = None if view is None else view.engines.get(engine_id.encode())
    ready = max(1, (None if state is None else state.replicas_ready) or 1)
    each = stated_rps(picture, engine_id) / ready
    return max(1, ceil(rps / each)) if each > 0.0 else 1


def _fallen(picture: Picture) -> Iterator[Cause]:
    for name, served in short_engines(picture).items():
        yield Cause(
            served.stated_rps - served.rps,
            f"{name} takes {served.rps:.0f} of {served.stated_rps:.0f} RPS",
            (explain(picture, name), f"headrace what-if --capacity {name}={served.stated_rps:g}"),
        )


def _fewer(picture: Picture) -> Iterator[Cause]:
    """Give the engines with fewer ready replicas than they want, or than they had."""
    had: dict[str, int] = {}
    for heard in picture.signals or ():
        signal = heard.signal
        ready = signal.status.replicas_ready if isinstance(signal, EngineSignals) and signal.status else None
        if isinstance(signal, EngineSignals) and ready is not None:
            had[signal.engine_id] = max(ready, had.get(signal.engine_id, 0))
    for state in picture.view.engines.values() if picture.view is not None else ():
        now, before = state.replicas_ready, max(had.get(state.engine_id, 0), state.replicas_desired or 0)
        if now and before > now:
            yield Cause(
                stated_rps(picture, state.engine_id) / now * (before - now),
                f"{state.engine_id} has {now} ready of {before} replicas",
                (f"headrace what-if --add-replicas {state.engine_id}={before - now}", "headrace signals states"),
            )


def _out(picture: Picture, now_ms: int) -> Iterator[Cause]:
    if picture.view is None:
        return
    for engine in assemble(picture.view, picture.setup.solver, now_ms).engines:
        if engine.exclusion is not None:
            yield Cause(
                stated_rps(picture, engine.engine_id),
                f"{engine.engine_id} is out, {engine.exclusion.reason}",
                (explain(picture, engine.engine_id),),
            )


def _pinned(picture: Picture, now_ms: int) -> Iterator[Cause]:
    """Give the pins that keep a cluster, which is refused some, from an engine with room, by what that has room for."""
    for _, pin in sorted(picture.view.overrides.items()) if picture.view is not None else ():
        if pin.kind is not OverrideKind.PIN or not pin.holds(now_ms):
            continue
        held = [
            (route.shed_ratio * route.demand_rps, target.utilisation or 0.0)
            for route in picture.routes.values()
            if route.cluster == pin.cluster and pin.target in pins_with_room(route)
            for target in route.targets
            if target.engine_id == pin.target
        ]
        if held:
            load = max(used for _, used in held)
            room_rps = (1.0 - load) * stated_rps(picture, pin.target)
            sentence = f"{named(pin)}, {pin.share_words}, leaves it at {100 * load:.0f} % load, {pin.words}"
            yield Cause(min(sum(rps for rps, _ in held), room_rps), sentence, (take_back(pin),))


def _grown(picture: Picture) -> Iterator[Cause]:
    before, now = _before(picture), defaultdict[str, float](float)
    for state in picture.view.demands.values() if picture.view is not None else ():
        now[state.cluster] += state.smoothed_rps or 0.0
    for cluster, rps in before.items():
        if now[cluster] > GROWN * rps:
            grown = now[cluster] - rps
            engine = nearest_engine(picture, cluster)
            shed = picture.decisions[-1].shed_rps if picture.decisions else grown
            more = () if engine is None else (_more(picture, engine, min(grown, shed)),)
            yield Cause(grown, f"{cluster} asks for {now[cluster]:.0f} RPS, {rps:.0f} before", more)


def _more(picture: Picture, engine_id: str, rps: float) -> str:
    return f"headrace what-if --add-replicas {engine_id}={replicas_for(picture, engine_id, rps)}"


def _before(picture: Picture) -> dict[str, float]:
    """Give what each cluster asked for in the middle of the ticks that refused nothing; empty where there is none."""
    served = [tick.version for tick in picture.decisions or () if not refuses(tick)]
    if not served:
        return {}
    middle, newest = served[len(served) // 2], dict[RouteKey, float]()
    for planned in picture.planned:
        if planned.version <= middle:
            newest[planned.route] = planned.demand_rps
    found = defaultdict[str, float](float)
    for route, rps in newest.items():
        found[route.cluster] += rps
    return found
