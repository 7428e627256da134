"""Whoever published signals a while ago still does: no collector, sidecar or gateway has fallen silent."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from headrace.infra.doctor.core.checks.watermark import event_ms
from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.mending import sidecar
from headrace.infra.doctor.core.picture import Heard, Picture
from headrace.infra.doctor.core.words import count, duration, some
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe

FOLLOWS_FROM = ("brokers", "dead_letters")

SILENT_MS = 30_000
PERIODS = 6.0
"""So many of its own periods without a word, and at least SILENT_MS."""


@dataclass(slots=True)
class _Source:
    newest_ms: int = 0
    times: list[int] = field(default_factory=list[int])
    keys: set[bytes] = field(default_factory=set[bytes])


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each source that has fallen silent, and what is not told since."""
    if picture.signals is None:
        return
    found: dict[tuple[str, str], _Source] = defaultdict(_Source)
    told_ms: dict[bytes, int] = {}
    for heard in picture.signals:
        at_ms = min(heard.record_ms, now_ms)
        source = found[kind_of(heard), heard.signal.source]
        source.newest_ms = max(source.newest_ms, at_ms)
        source.times.append(event_ms(heard.signal))
        source.keys.add(heard.signal.key)
        told_ms[heard.signal.key] = max(told_ms.get(heard.signal.key, 0), at_ms)
    for (kind, name), source in sorted(found.items()):
        silent_ms = now_ms - source.newest_ms
        bound_ms = max(SILENT_MS, PERIODS * _period_ms(source.times))
        # A replica that was replaced is no loss: somebody else tells of the same engines.
        lost = [key for key in source.keys if told_ms[key] <= source.newest_ms]
        if silent_ms <= bound_ms or not lost:
            continue
        names = some(key.decode("utf-8", "replace") for key in lost)
        yield fault(
            name,
            f"source {name} has published no {kind} signals for {duration(silent_ms)}; at most {duration(bound_ms)}",
            f"nobody tells of {names} ({count(len(lost), 'key')}) any more: engines fade and expire, demand is held at "
            "its last known rate",
            *_mend(picture, name, kind, lost),
            value=silent_ms,
            bound=round(bound_ms),
        )


def kind_of(heard: Heard) -> str:
    """Name what a signal is of."""
    return {EngineSignals: "engine", Demand: "demand", NetworkProbe: "network"}[type(heard.signal)]


def _period_ms(times: list[int]) -> float:
    """Give the median time between two instants of which it told."""
    instants = sorted(set(times))
    steps = sorted(b - a for a, b in pairwise(instants))
    return steps[len(steps) // 2] if steps else 0.0


def _mend(picture: Picture, source: str, kind: str, lost: list[bytes]) -> tuple[str, ...]:
    if source.endswith("-bridge"):
        return ("headrace bridge",)
    if kind == "engine":
        return (sidecar(picture, min(lost).decode("utf-8", "replace")),)
    return ("headrace gateway",) if kind == "demand" else ("headrace doctor --only sources,network",)
