"""What snapshots and the engines themselves say of their load: who is full, and who serves less than it should.

An engine that takes more than it can serve is slow by as much as its queue is long. That is told as what it is, and
neither as a wrong unit nor as a profile of other hardware.
"""

from dataclasses import dataclass

from headrace.infra.doctor.core.picture import Picture
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.weights import PPM

HALE_SHARE = 0.9
"""An engine that was measured to serve at least this of what is stated is as stated."""
QUEUE_S = 2.0
"""So many seconds' worth of its capacity may wait in an engine."""
NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Served:
    """What a full engine was measured to serve, and what its profile or its fleet file states, RPS of all replicas."""

    rps: float
    stated_rps: float


def stated_rps(picture: Picture, engine_id: str) -> float:
    """Give what an engine's ready replicas are stated to serve; 0 where nobody states it."""
    view = picture.view
    spec = None if view is None else view.specs.get(engine_id.encode())
    if view is None or spec is None:
        return 0.0
    profile, state = view.profiles.get(spec.profile_id.encode()), view.engines.get(spec.key)
    each = spec.capacity_rps_per_replica or (0.0 if profile is None else profile.capacity_rps)
    ready = None if state is None else state.replicas_ready
    return each * (1 if ready is None else ready)


def short_engines(picture: Picture) -> dict[str, Served]:
    """Give the engines that the solver has measured to serve clearly less than they are stated to."""
    if picture.commit is None:
        return {}
    found: dict[str, Served] = {}
    for memory in picture.commit.remembered:
        stated = stated_rps(picture, memory.engine_id)
        if memory.capacity_ppm is not None and memory.capacity_ppm < HALE_SHARE * PPM and stated > 0.0:
            found[memory.engine_id] = Served(stated * memory.capacity_ppm / PPM, stated)
    return found


def waiting_s(picture: Picture, engine_id: str) -> float | None:
    """Give how many seconds' worth of its stated capacity wait in an engine; None where it does not tell."""
    state = None if picture.view is None else picture.view.engines.get(engine_id.encode())
    stated = stated_rps(picture, engine_id)
    return None if state is None or state.waiting is None or stated <= 0.0 else state.waiting / stated


def is_overloaded(picture: Picture, engine_id: str) -> bool:
    """Say whether requests wait in an engine: its times then tell of its queue, and of no unit and no hardware.

    An engine that does not tell its queue counts as overloaded where it is planned to be nearly full.
    """
    full = any(
        memory.full_since_ms is not None or (memory.capacity_ppm or PPM) < PPM
        for memory in (picture.commit.remembered if picture.commit is not None else ())
        if memory.engine_id == engine_id
    )
    state = None if picture.view is None else picture.view.engines.get(engine_id.encode())
    if full or (state is not None and state.waiting is not None and state.waiting >= 1.0):
        return True
    planned = planned_load(picture, engine_id)
    return (state is None or state.waiting is None) and planned is not None and planned >= NEARLY_FULL


def planned_load(picture: Picture, engine_id: str) -> float | None:
    """Give the share of its capacity that an engine is planned with; None where it is planned with nothing."""
    planned = [
        target.utilisation
        for route in picture.routes.values()
        for target in route.targets
        if target.engine_id == engine_id and target.utilisation is not None and target.weight_ppm
    ]
    return max(planned, default=None)


def load_of(picture: Picture, spec: EngineSpec, profile: LatencyProfile) -> float | None:
    """Give the share of its capacity that an engine is planned with, else finishes; None where neither is known."""
    planned = planned_load(picture, spec.engine_id)
    state = None if picture.view is None else picture.view.engines.get(spec.key)
    if planned is not None or state is None or state.finished_rps is None or not state.replicas_ready:
        return planned
    return state.finished_rps / (state.replicas_ready * (spec.capacity_rps_per_replica or profile.capacity_rps))
