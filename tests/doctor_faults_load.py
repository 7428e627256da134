"""Planted faults of load: engines that serve less than they are stated to, and what is refused for it."""

from collections.abc import Callable
from dataclasses import replace

from doctor_planted import Planted, W
from doctor_system import System
from headrace.schemas.signals import Metric
from headrace.schemas.weights import PPM, EngineMemory


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
)
