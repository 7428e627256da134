"""Planted faults of what engines, gateways and probes tell, and of what is made of it."""

from collections.abc import Callable
from dataclasses import replace

from doctor_planted import F, Planted, W
from doctor_system import System, moved
from headrace.schemas.signals import Health, Metric
from headrace.solver.core.effective import settings_text


def _state(engine_id: str, **fields: object) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.states[engine_id] = replace(system.states[engine_id], **fields)

    return plant


def _in_milliseconds(system: System) -> None:
    state = system.states["engine-b"]
    thousandfold = tuple(replace(each, mean_s=1000 * (each.mean_s or 0.0)) for each in state.latencies)
    system.states["engine-b"] = replace(state, latencies=thousandfold)


def _without(metric: Metric) -> Callable[[System], None]:
    def plant(system: System) -> None:
        state = system.states["engine-b"]
        left = tuple(each for each in state.latencies if each.metric is not metric)
        system.states["engine-b"] = replace(state, latencies=left)

    return plant


def _silent_engine(system: System) -> None:
    state = system.states["engine-b"]
    old_ms = state.last_signal_ms - 45_000
    system.states["engine-b"] = replace(state, last_signal_ms=old_ms, as_of_ms=old_ms)


def _silent_source(system: System) -> None:
    """The collector of engine-b ended two minutes ago; its state has aged as long."""
    system.signals = [
        (at_ms - 120_000, moved(signal, -120_000)) if signal.source == "engine-b/sim" else (at_ms, signal)
        for at_ms, signal in system.signals
    ]


def _clock(by_ms: int) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.signals = [
            (at_ms, moved(signal, by_ms) if signal.source == "engine-c/sim" else signal)
            for at_ms, signal in system.signals
        ]

    return plant


def _spec(engine_id: str, **fields: object) -> Callable[[System], None]:
    def plant(system: System) -> None:
        system.specs[engine_id] = replace(system.specs[engine_id], **fields)

    return plant


def _no_fleet(system: System) -> None:
    system.specs.clear()


def _fading_engine(system: System) -> None:
    """Fading begins at 5 s, and ends at 15 s: what is left at 7.5 s is three quarters."""
    state = system.states["engine-b"]
    old_ms = state.last_signal_ms - 7_500
    system.states["engine-b"] = replace(state, last_signal_ms=old_ms, as_of_ms=old_ms, period_ms=None)


def _engine_never_heard(system: System) -> None:
    system.specs["engine-d"] = replace(system.specs["engine-b"], engine_id="engine-d")


def _slow_reports(system: System) -> None:
    for engine_id in system.states:
        _state(engine_id, period_ms=15_000)(system)


def _held_demand(system: System) -> None:
    state = system.demands["cluster-b"]
    old_ms = state.last_signal_ms - 40_000
    system.demands["cluster-b"] = replace(state, last_signal_ms=old_ms, as_of_ms=old_ms)


def _lost_link(system: System) -> None:
    link = system.links["cluster-a", "us-east-1"]
    system.links["cluster-a", "us-east-1"] = replace(link, lost_share=1.0, rtt_s=None, smoothed_s=None)


def _slow_link(system: System) -> None:
    link = system.links["cluster-a", "us-east-1"]
    system.links["cluster-a", "us-east-1"] = replace(link, rtt_s=64.0, smoothed_s=64.0)


def _watermark(system: System) -> None:
    for key, state in system.states.items():
        at_ms = state.last_signal_ms - 25_000
        system.states[key] = replace(state, last_signal_ms=at_ms, as_of_ms=at_ms)


def _other_settings(system: System) -> None:
    running = replace(system.setup.solver, move_price_ms=5.0)
    last = system.ticks[-1]
    system.ticks[-1] = replace(last, record=replace(last.record, settings=settings_text(running)))


SIGNALS: tuple[Planted, ...] = (
    Planted(
        "a latency a thousand times off",
        _in_milliseconds,
        "units",
        F,
        "engine-b: ttft of llama-3.1-8b is 100 s",
        "headrace signals states",
    ),
    Planted(
        "a round trip a thousand times off",
        _slow_link,
        "units",
        F,
        "cluster-a to us-east-1 is 64 s",
        "headrace explain cluster-a",
    ),
    Planted(
        "a capacity a thousand times off",
        _spec("engine-b", capacity_rps_per_replica=25_000.0),
        "units",
        F,
        "capacity_rps_per_replica is 25000",
        "headrace fleet apply",
    ),
    Planted(
        "a collector that has stopped",
        _silent_source,
        "sources",
        F,
        "source engine-b/sim has published no engine signals for",
        "headrace signals publish",
    ),
    Planted(
        "a clock that is ahead",
        _clock(20_000),
        "clocks",
        F,
        "source engine-c/sim dates its engine signals",
        "chronyc makestep",
    ),
    Planted("a clock that is behind", _clock(-30_000), "clocks", W, "before they reach Kafka", "chronyc makestep"),
    Planted(
        "an engine without a time to first token",
        _without(Metric.TTFT),
        "coverage",
        W,
        "1 of 3 engines tell no ttft: engine-b",
        "--engine-id engine-b",
    ),
    Planted(
        "an engine without a time between tokens",
        _without(Metric.TBOT),
        "coverage",
        W,
        "1 of 3 engines tell no tbot: engine-b",
        "--engine-id engine-b",
    ),
    Planted(
        "an engine that does not tell its health",
        _state("engine-b", health=Health.UNKNOWN),
        "coverage",
        W,
        "tell no health: engine-b",
        "--engine-id engine-b",
    ),
    Planted(
        "an engine that does not tell its replicas",
        _state("engine-b", replicas_ready=None),
        "coverage",
        W,
        "tell no ready: engine-b",
        "--engine-id engine-b",
    ),
    Planted(
        "a stale engine",
        _silent_engine,
        "engines",
        W,
        "STALE: engine-b; engine-b: silent for 45.0 s",
        "headrace signals publish",
    ),
    Planted(
        "an engine that fades",
        _fading_engine,
        "engines",
        W,
        "counted with a part of their capacity: engine-b; engine-b with 75 %: silent for 7.5 s",
        "headrace signals publish",
    ),
    Planted(
        "an engine that was never heard of",
        _engine_never_heard,
        "engines",
        W,
        "NO_STATE: engine-d",
        "headrace fleet remove engine-d",
    ),
    Planted(
        "an engine without a ready replica",
        _state("engine-b", replicas_ready=0),
        "engines",
        W,
        "NO_READY_REPLICA: engine-b",
        "headrace fleet remove engine-b",
    ),
    Planted(
        "states that are behind their signals",
        _watermark,
        "watermark",
        W,
        "engine states are 25 s behind",
        "headrace streams --workers 2",
    ),
    Planted("demand that nobody confirms", _held_demand, "demand", W, "demand of 1 route is held", "headrace gateway"),
    Planted("a link that is down", _lost_link, "network", W, "cluster-a to us-east-1", "headrace explain cluster-a"),
    Planted("no fleet", _no_fleet, "fleet", F, "holds 0 engines; at least 1", "headrace fleet apply fleet.toml"),
    Planted(
        "windows shorter than the reports are apart",
        _slow_reports,
        "settings",
        W,
        "streams.window_ms is 10000; at least 30000",
        "headrace streams --set streams.window_ms=45000",
    ),
    Planted(
        "a solver with other settings",
        _other_settings,
        "settings",
        W,
        "solver.move_price_ms is 5.0 there and 30.0 here",
        "headrace solver",
    ),
)
