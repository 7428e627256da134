"""Every engine at one version as columns: thousands of rows stay small on the wire; the page sorts and filters them.

`capacity_rps` is what the plan counted where something is planned to go there, else what the ready replicas come to by
the fleet's word (`nominal`), null where neither is known. What the engines say of themselves (ready replicas, running,
waiting, KV use) is of now: it stands only in the newest version's table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.infra.console.core.standings import EngineStanding
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.state import EngineState


@dataclass(frozen=True, slots=True)
class EngineTable:
    """Engines as columns, sorted by id; null is not known. `live` says whether the engines' own words are in it."""

    version: int
    tick_ms: int
    live: bool
    engine_id: tuple[str, ...]
    site: tuple[str | None, ...]
    models: tuple[str, ...]
    standing: tuple[str, ...]
    reason: tuple[str, ...]
    load_rps: tuple[float, ...]
    capacity_rps: tuple[float | None, ...]
    nominal: tuple[bool, ...]
    utilisation: tuple[float | None, ...]
    replicas_ready: tuple[int | None, ...]
    replicas_desired: tuple[int | None, ...]
    running: tuple[float | None, ...]
    waiting: tuple[float | None, ...]
    kv_usage: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is known of the engines beside the weights: by engine id, profiles by their own."""

    specs: Mapping[str, EngineSpec]
    profiles: Mapping[str, LatencyProfile]
    states: Mapping[str, EngineState]


def engine_table(
    version: int, tick_ms: int, engines: Sequence[EngineStanding], fleet: Fleet, *, live: bool
) -> EngineTable:
    """Give the table; `live` where the version is the newest, so that the engines' own words belong to it."""
    specs = [fleet.specs.get(engine.engine_id) for engine in engines]
    states = [fleet.states.get(engine.engine_id) if live else None for engine in engines]
    nominal = [nominal_rps(spec, state, fleet) for spec, state in zip(specs, states, strict=True)]
    return EngineTable(
        version=version,
        tick_ms=tick_ms,
        live=live,
        engine_id=tuple(engine.engine_id for engine in engines),
        site=tuple(None if spec is None else spec.site for spec in specs),
        models=tuple("" if spec is None else ", ".join(sorted(spec.models)) for spec in specs),
        standing=tuple(engine.standing.value for engine in engines),
        reason=tuple(engine.reason for engine in engines),
        load_rps=tuple(_short(engine.load_rps) for engine in engines),
        capacity_rps=tuple(
            _short_or_none(other if engine.capacity_rps is None else engine.capacity_rps)
            for engine, other in zip(engines, nominal, strict=True)
        ),
        nominal=tuple(engine.capacity_rps is None for engine in engines),
        utilisation=tuple(_short_or_none(engine.utilisation) for engine in engines),
        replicas_ready=tuple(None if state is None else state.replicas_ready for state in states),
        replicas_desired=tuple(None if state is None else state.replicas_desired for state in states),
        running=tuple(None if state is None else state.running for state in states),
        waiting=tuple(None if state is None else state.waiting for state in states),
        kv_usage=tuple(None if state is None else _short_or_none(state.kv_usage) for state in states),
    )


def nominal_rps(spec: EngineSpec | None, state: EngineState | None, fleet: Fleet) -> float | None:
    """Give ready replicas x capacity of one; None where either is not known."""
    if spec is None or state is None or state.replicas_ready is None:
        return None
    profile = fleet.profiles.get(spec.profile_id)
    one = spec.capacity_rps_per_replica
    if one is None:
        one = None if profile is None else profile.capacity_rps
    return None if one is None else state.replicas_ready * one


def _short(value: float) -> float:
    return round(value, 4)


def _short_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
