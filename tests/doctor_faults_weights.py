"""Planted faults of profiles, of the solver and what it writes, and of what operators say."""

from collections.abc import Callable
from dataclasses import replace

from doctor_planted import DAY_MS, MINUTE_MS, F, N, Planted, W
from doctor_system import Put, System
from headrace.schemas.codec import encode
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind
from headrace.schemas.signals import Vantage
from headrace.schemas.state import OutcomePane, OutcomeState
from headrace.schemas.topics import PROFILES, STATE_ENGINE
from headrace.schemas.weights import PPM, EngineMemory, Protected, SnapshotStatus
from headrace.solver.core.tick import Tick


def _records(*puts: Callable[[System], Put]) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.raw += [put(system) for put in puts]

    return plant


def _old_snapshot(by_ms: int) -> Callable[[System], None]:
    def older(tick: Tick) -> Tick:
        commit = replace(
            tick.snapshot.commit,
            tick_ms=tick.snapshot.commit.tick_ms - by_ms,
            valid_until_ms=tick.snapshot.commit.valid_until_ms - by_ms,
        )
        record = replace(tick.record, tick_ms=tick.record.tick_ms - by_ms)
        return replace(tick, snapshot=replace(tick.snapshot, commit=commit), record=record)

    return lambda system: system.map_ticks(older)


def _record(**fields: object) -> Callable[[System], None]:
    return lambda system: system.map_ticks(lambda tick: replace(tick, record=replace(tick.record, **fields)))


def _commit(**fields: object) -> Callable[[System], None]:
    def changed(tick: Tick) -> Tick:
        return replace(tick, snapshot=replace(tick.snapshot, commit=replace(tick.snapshot.commit, **fields)))

    return lambda system: system.map_ticks(changed)


def _two_solvers(system: System) -> None:
    """Another one, of an older epoch, goes on writing between the commits of the one that leads."""
    ticks = [system.ticks[0]]
    for tick in system.ticks[1:]:
        zombie = replace(tick.snapshot.commit, epoch=tick.snapshot.commit.epoch - 1)
        ticks += [tick, replace(tick, snapshot=replace(tick.snapshot, commit=zombie))]
    system.ticks = ticks


def _changing_solvers(system: System) -> None:
    def other(number: int, tick: Tick) -> Tick:
        commit = replace(tick.snapshot.commit, epoch=3 + number)
        return replace(tick, snapshot=replace(tick.snapshot, commit=commit))

    system.ticks = [other(number, tick) for number, tick in enumerate(system.ticks)]


def _override(kind: OverrideKind, target: str, from_ms: int, to_ms: int) -> Callable[[System], None]:
    def plant(system: System) -> None:
        now_ms = system.now_ms
        system.overrides.append(Override(kind, target, "ann", "driver upgrade", now_ms + from_ms, now_ms + to_ms))

    return plant


def _failing(failed: int, succeeded: int) -> Callable[[System], None]:
    """Gateways count so many of engine-b's requests in the newest window; its site has no other engine."""

    def plant(system: System) -> None:
        panes = (
            OutcomePane(system.now_ms - 5_000, succeeded // 2, failed // 2, is_final=True),
            OutcomePane(system.now_ms, succeeded - succeeded // 2, failed - failed // 2, is_final=False),
        )
        ended = (OutcomeState("llama-3.1-8b", Vantage.GATEWAY, 5_000, panes),)
        system.states["engine-b"] = replace(system.states["engine-b"], outcomes=ended)

    return plant


def _pin(system: System) -> None:
    now_ms = system.now_ms
    until_ms = now_ms + 5 * MINUTE_MS
    pin = Override(
        OverrideKind.PIN, "engine-b", "ann", "canary", now_ms - 60 * MINUTE_MS, until_ms, "cluster-a", 0, 300_000
    )
    system.overrides.append(pin)


def _profile(**fields: object) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.profiles = {name: replace(profile, **fields) for name, profile in system.profiles.items()}

    return plant


def _refused_profile(system: System) -> None:
    (profile,) = system.profiles.values()
    wrong = replace(profile, ttft_s=profile.ttft_s[:-1])
    system.raw.append(Put(PROFILES, profile.key, encode(wrong), system.now_ms))


def _spec(engine_id: str, **fields: object) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.specs[engine_id] = replace(system.specs[engine_id], **fields)

    return plant


def _two_folds(system: System) -> Put:
    """Another group's worker writes a state that has applied less."""
    state = replace(system.states["engine-a"], applied_offset=3)
    return Put(STATE_ENGINE, state.key, encode(state), system.now_ms)


def _remembered(system: System) -> None:
    _commit(remembered=(EngineMemory("engine-b", trim_ppm=2 * PPM),))(system)


WRITTEN: tuple[Planted, ...] = (
    Planted(
        "two solvers that write at once",
        _two_solvers,
        "writers",
        F,
        "is of epoch 2, version 51, after epoch 3",
        "solver.leader_election=true",
    ),
    Planted(
        "solvers that fence each other",
        _changing_solvers,
        "writers",
        W,
        "11 times another writer",
        "solver.leader_election=true",
    ),
    Planted(
        "two groups of streams that write one state",
        _records(_two_folds),
        "writers",
        F,
        "the state of engine-a goes back",
        "headrace streams --print-config",
    ),
    Planted(
        "a refused profile",
        _refused_profile,
        "profiles",
        F,
        "is refused: OUT_OF_RANGE: ttft_s has",
        "headrace profile fit",
    ),
    Planted(
        "a profile that nobody published",
        _spec("engine-b", profile_id="p-new"),
        "profiles",
        W,
        "profile p-new of 1 engine is not published: engine-b",
        "headrace profile fit load.csv",
    ),
    Planted(
        "a profile that fits badly",
        _profile(fit_error_p90=0.6),
        "profile_fit",
        W,
        "fit_error_p90 is 0.60; at most 0.25",
        "headrace profile fit",
    ),
    Planted(
        "an engine that is not as its profile says",
        _remembered,
        "profile_fit",
        W,
        "engine-b is 2.00 times as slow",
        "headrace profile fit",
    ),
    Planted(
        "a load beyond what was measured",
        _profile(measured_to_load=0.5),
        "extrapolation",
        W,
        "was measured to 50 % of its capacity; ",
        "headrace profile fit",
    ),
    Planted(
        "an engine that fails requests",
        _commit(protections=(Protected("engine-b", "errors", 0.25, "12 of 60 requests failed in 10 s, peers 0.3 %"),)),
        "failing",
        W,
        "1 engine fails more requests than its peers, or did: engine-b; engine-b: 12 of 60 requests failed in 10 s",
        "headrace explain cluster-a engine-b",
    ),
    Planted(
        "an engine that fails requests, and keeps its traffic",
        _failing(40, 160),
        "failing",
        W,
        "1 engine fails requests and keeps its traffic: engine-b; engine-b: 40 of 200 requests failed in 10 s, 20 %",
        "headrace drain engine-b",
    ),
    Planted("an old snapshot", _old_snapshot(30_000), "snapshot", F, "snapshot 51 is 30", "headrace solver"),
    Planted(
        "a snapshot that is no longer valid",
        _old_snapshot(300_000),
        "snapshot",
        F,
        "was valid until",
        "headrace solver",
    ),
    Planted(
        "a solver on a low rung",
        _record(rung="UNSCALED"),
        "rung",
        W,
        "12 of the newest 12 ticks needed a lower rung (UNSCALED)",
        "headrace tail decisions",
    ),
    Planted(
        "weights that are held",
        _record(status=SnapshotStatus.HELD, rung="HOLD", sentence="telemetry lost"),
        "rung",
        F,
        "version 51 is HELD: telemetry lost",
        "headrace doctor --only engines",
    ),
    Planted(
        "a solver that is too slow",
        _record(solve_us=1_500_000),
        "rung",
        W,
        "took 1.5 s or more; at most solver.period_ms, 500",
        "headrace solver --set solver.period_ms=",
    ),
    Planted(
        "a freeze in force",
        _override(OverrideKind.FREEZE, WHOLE_FLEET, -MINUTE_MS, 60 * MINUTE_MS),
        "freeze",
        W,
        "all weights are frozen by ann",
        "headrace unfreeze",
    ),
    Planted(
        "an endless freeze",
        _override(OverrideKind.FREEZE, WHOLE_FLEET, -MINUTE_MS, 400 * DAY_MS),
        "freeze",
        W,
        "lasts another 400 d; at most 24 h",
        "headrace unfreeze",
    ),
    Planted(
        "a freeze that ran out",
        _override(OverrideKind.FREEZE, WHOLE_FLEET, -60 * MINUTE_MS, -MINUTE_MS),
        "freeze",
        N,
        "ran out 60 s ago",
        "headrace unfreeze",
    ),
    Planted(
        "a drain that is about to run out",
        _override(OverrideKind.DRAIN, "engine-b", -60 * MINUTE_MS, 5 * MINUTE_MS),
        "overrides",
        W,
        "runs out in 5 min",
        "headrace drain engine-b --reason 'driver upgrade' --for 2h",
    ),
    Planted(
        "a pin that is about to run out",
        _pin,
        "overrides",
        W,
        "pin of what cluster-a sends engine-b by ann",
        "headrace pin cluster-a engine-b --least 0ppm --most 300000ppm --reason canary --for 2h",
    ),
    Planted(
        "a drain that ran out",
        _override(OverrideKind.DRAIN, "engine-b", -60 * MINUTE_MS, -MINUTE_MS),
        "overrides",
        N,
        "ran out 60 s ago",
        "headrace undrain engine-b",
    ),
    Planted(
        "a drain of an engine that is gone",
        _override(OverrideKind.DRAIN, "engine-x", -MINUTE_MS, 60 * MINUTE_MS),
        "overrides",
        W,
        "an engine that the fleet does not have",
        "headrace undrain engine-x",
    ),
    Planted(
        "more demand than capacity",
        _record(shed_rps=30.0),
        "capacity",
        F,
        "sheds 30.0 of",
        "headrace what-if --add-replicas",
    ),
)
