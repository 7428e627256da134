"""Planted faults of load: engines that serve less than they are stated to, and what is refused for it."""

from collections.abc import Callable
from dataclasses import replace

from doctor_planted import MINUTE_MS, F, Planted, W
from doctor_system import System, view_of
from headrace.schemas.overrides import Override, OverrideKind
from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Metric
from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop


def remember(system: System, *memories: EngineMemory) -> None:
    """Let every snapshot say this of its engines."""
    system.map_ticks(
        lambda tick: replace(
            tick, snapshot=replace(tick.snapshot, commit=replace(tick.snapshot.commit, remembered=memories))
        )
    )


def _slowed(ttft_s: float) -> Callable[[System], None]:
    """Three times as slow and full: a queue, a time to first token that grows with it, a trim as far as it goes."""

    def plant(system: System) -> None:
        state = system.states["engine-b"]
        latencies = tuple(
            replace(each, mean_s=ttft_s) if each.metric is Metric.TTFT else replace(each, mean_s=3 * (each.mean_s or 0))
            for each in state.latencies
        )
        system.states["engine-b"] = replace(state, latencies=latencies, waiting=150.0)
        remember(system, EngineMemory("engine-b", trim_ppm=2 * PPM, capacity_ppm=350_000))

    return plant


def _queue(system: System) -> None:
    system.states["engine-b"] = replace(system.states["engine-b"], waiting=900.0)


def _shed(system: System, rps: float, ticks: int = 3) -> None:
    """The newest ticks refuse so much; those before them, nothing."""
    system.ticks[-ticks:] = [replace(tick, record=replace(tick.record, shed_rps=rps)) for tick in system.ticks[-ticks:]]


def _surge(system: System) -> None:
    """cluster-b asks for three times what it asked for while nothing was refused."""
    system.demands["cluster-b"] = replace(system.demands["cluster-b"], rate_rps=300.0, smoothed_rps=300.0)
    _shed(system, 150.0)


def _lost_replicas(system: System) -> None:
    """engine-c goes on with a quarter of its replicas, and wants no more."""
    status = EngineStatus(Health.HEALTHY, 4, 4, 4, 5.0, 0.0, 0.2)
    system.signals = [
        (at_ms, replace(signal, status=status))
        if isinstance(signal, EngineSignals) and signal.engine_id == "engine-c" and system.now_ms - at_ms > 20_000
        else (at_ms, signal)
        for at_ms, signal in system.signals
    ]
    system.states["engine-c"] = replace(
        system.states["engine-c"], replicas_desired=1, replicas_ready=1, replicas_reporting=1
    )
    _shed(system, 40.0)


def _pinned(system: System) -> None:
    """cluster-a may send each engine three tenths at most: one tenth is refused while all have room."""
    from_ms, until_ms = system.now_ms - 60 * MINUTE_MS, system.now_ms + 60 * MINUTE_MS
    system.overrides += [
        Override(OverrideKind.PIN, name, "ann", "canary", from_ms, until_ms, "cluster-a", 0, 300_000)
        for name in ("engine-a", "engine-b", "engine-c")
    ]
    view = replace(view_of(system), overrides={each.key: each for each in system.overrides})
    problem, previous = assemble(view, system.setup.solver, system.now_ms), None
    for number, old in enumerate(system.ticks):
        commit = old.snapshot.commit
        stamp = TickStamp(commit.epoch, commit.version, commit.tick_ms)
        system.ticks[number] = solve_tick(problem, previous, system.setup.solver, Glop(), stamp)
        previous = system.ticks[number].snapshot


LOAD: tuple[Planted, ...] = (
    Planted(
        "an engine that serves a third of what its profile says",
        _slowed(7.05541),
        "load",
        W,
        "engine-b takes 35 RPS where",
        "headrace explain cluster-",
    ),
    Planted(
        "a queue of a minute, a thousand times what an idle engine takes",
        _slowed(60.0),
        "load",
        W,
        "engine-b takes 35 RPS where",
        "headrace explain cluster-",
    ),
    Planted(
        "a queue before an engine",
        _queue,
        "load",
        W,
        "engine-b has 900 requests waiting, 9.0 s",
        "headrace explain cluster-",
    ),
    Planted(
        "a cluster that asks for more than there is",
        _surge,
        "capacity",
        F,
        "cluster-b asks for 300 RPS, 100 before",
        "headrace what-if --add-replicas engine-",
    ),
    Planted(
        "an engine that has lost replicas",
        _lost_replicas,
        "capacity",
        F,
        "engine-c has 1 ready of 4 replicas",
        "headrace what-if --add-replicas engine-c=3",
    ),
    Planted(
        "pins that refuse what engines have room for",
        _pinned,
        "capacity",
        F,
        "pin of what cluster-a sends engine-c, at most 30 %, leaves it at ",
        "headrace unpin cluster-a engine-",
    ),
)
