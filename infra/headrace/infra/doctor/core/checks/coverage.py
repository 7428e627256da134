"""Every engine tells what the solver goes by: time to first token, time between tokens, health, replicas, load."""

from collections.abc import Callable, Iterator, Mapping

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import how_to_publish
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.schemas.signals import Health, Metric
from headrace.schemas.state import EngineState

FOLLOWS_FROM = ("brokers", "workers")


def _has(metric: Metric) -> Callable[[EngineState], bool]:
    def has(state: EngineState) -> bool:
        return any(each.metric is metric and each.smoothed_s is not None for each in state.latencies)

    return has


def _is_idle(state: EngineState) -> bool:
    """Say whether an engine has nothing to measure a latency of."""
    served = any(each.count for each in state.latencies)
    return not served and not state.running and not state.finished_rps


_LATENCIES: Mapping[str, tuple[Callable[[EngineState], bool], str]] = {
    "ttft": (
        _has(Metric.TTFT),
        "its speed is not held against its profile: neither trimmed nor an outlier if it slows",
    ),
    "tbot": (_has(Metric.TBOT), "its speed is known by end-to-end times alone, if at all, whatever answers it gives"),
}
_STATUS: Mapping[str, tuple[Callable[[EngineState], bool], str]] = {
    "health": (lambda s: s.health is not Health.UNKNOWN, "one that calls itself unhealthy would not be taken out"),
    "ready": (lambda s: s.replicas_ready is not None, "its capacity is guessed from those that report, or as of one"),
    "running": (lambda s: s.running is not None, "a queue or a low real capacity is not noticed"),
    "waiting": (lambda s: s.waiting is not None, "a queue or a low real capacity is not noticed"),
}


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each signal that some engines of the fleet do not tell, and which."""
    if picture.view is None:
        return
    told = [state for key, state in picture.view.engines.items() if key in picture.view.specs]
    for name, (has, means) in (*_LATENCIES.items(), *_STATUS.items()):
        lacking = [s.engine_id for s in told if not has(s) and not (name in _LATENCIES and _is_idle(s))]
        if not lacking:
            continue
        yield warning(
            name,
            f"{len(lacking)} of {count(len(told), 'engine')} tell no {name}: {some(lacking)}; 0 should not",
            f"of such an engine {means}",
            *how_to_publish(picture, min(lacking)),
            value=len(lacking),
            bound=0,
        )
