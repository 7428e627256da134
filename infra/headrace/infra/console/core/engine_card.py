"""One engine in full: what the fleet says of it, what it says of itself, how it stands and what acts on it."""

from dataclasses import dataclass

from headrace.infra.console.core.engine_table import Fleet, nominal_rps
from headrace.infra.console.core.standings import EngineStanding
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.state import LatencyState
from headrace.schemas.weights import Protected


@dataclass(frozen=True, slots=True)
class OwnWord:
    """What the engine last said of itself; null is not measured."""

    last_signal_ms: int
    health: str
    replicas_desired: int | None
    replicas_ready: int | None
    running: float | None
    waiting: float | None
    kv_usage: float | None
    finished_rps: float | None
    coverage: float
    invalid: str
    latencies: tuple[LatencyState, ...]


@dataclass(frozen=True, slots=True)
class EngineCard:
    """One engine at one version.

    `spec` is null where the fleet does not have it (any more), `own` where it is silent or the version not the newest.
    """

    version: int
    tick_ms: int
    engine_id: str
    standing: str
    reason: str
    sentence: str
    load_rps: float
    capacity_rps: float | None
    nominal_rps: float | None
    utilisation: float | None
    protections: tuple[Protected, ...]
    spec: EngineSpec | None
    own: OwnWord | None


def engine_card(version: int, tick_ms: int, engine: EngineStanding, fleet: Fleet, *, live: bool) -> EngineCard:
    """Give the card; `live` where the version is the newest."""
    spec, state = fleet.specs.get(engine.engine_id), fleet.states.get(engine.engine_id) if live else None
    own = None
    if state is not None:
        own = OwnWord(
            last_signal_ms=state.last_signal_ms,
            health=state.health.value,
            replicas_desired=state.replicas_desired,
            replicas_ready=state.replicas_ready,
            running=state.running,
            waiting=state.waiting,
            kv_usage=state.kv_usage,
            finished_rps=state.finished_rps,
            coverage=state.coverage,
            invalid=state.invalid.value,
            latencies=state.latencies,
        )
    return EngineCard(
        version=version,
        tick_ms=tick_ms,
        engine_id=engine.engine_id,
        standing=engine.standing.value,
        reason=engine.reason,
        sentence=engine.sentence,
        load_rps=engine.load_rps,
        capacity_rps=engine.capacity_rps,
        nominal_rps=nominal_rps(spec, state, fleet),
        utilisation=engine.utilisation,
        protections=engine.protections,
        spec=spec,
        own=own,
    )
