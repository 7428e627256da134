"""States follow their signals: between the newest signal and the newest state lie the grace and a few panes."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe

FOLLOWS_FROM = ("brokers", "workers", "lag", "dead_letters")

SLACK_MS = 10_000


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each kind of state that is behind its signals in event time."""
    view, streams = picture.view, picture.setup.streams
    if view is None or picture.signals is None:
        return
    bound_ms = streams.grace_ms + 3 * streams.pane_ms + streams.batch_wait_ms + SLACK_MS
    heard: dict[type, list[int]] = {EngineSignals: [], Demand: [], NetworkProbe: []}
    for each in picture.signals:
        if event_ms(each.signal) <= now_ms:
            heard[type(each.signal)].append(event_ms(each.signal))
    folded: tuple[tuple[str, type, list[int]], ...] = (
        ("engine", EngineSignals, [state.last_signal_ms for state in view.engines.values()]),
        ("demand", Demand, [state.last_signal_ms for state in view.demands.values()]),
        ("network", NetworkProbe, [state.last_signal_ms for state in view.links.values()]),
    )
    for name, kind, instants in folded:
        newest = max(instants, default=None)
        if newest is None or not heard[kind]:
            continue
        behind_ms = max(heard[kind]) - newest
        if behind_ms > bound_ms:
            yield warning(
                name,
                f"{name} states are {duration(behind_ms)} behind their signals; at most {duration(bound_ms)}",
                "weights follow what was, that long ago: a worker is slow, or has just taken over",
                "headrace streams --workers 2",
                value=behind_ms,
                bound=bound_ms,
            )


def event_ms(signal: EngineSignals | Demand | NetworkProbe) -> int:
    """Give the end of what a signal tells of."""
    return signal.at_ms if isinstance(signal, NetworkProbe) else signal.period_end_ms
