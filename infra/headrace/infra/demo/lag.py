"""From a signal to the weights that it had a part in: measured for every state record and every data plane.

    state record at offset o, whose newest signal has Kafka timestamp t
    lag = wall clock of the first installation whose commit had read past o, minus t

The commit's `inputs` name the next offset of each partition, so an installation covers o where that is above o. Both
sides may come first: the reader of the state topics and the feeds of the data planes are threads of their own. Signals
from before a data plane's first installation are left out: they measure the start, not the path.

Pure: it is told what was read and installed, and when. Bounded by MAX_WAITING and MAX_KEPT.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.schemas.weights import InputOffsets

MAX_WAITING = 100_000
"""State records that no installation has covered yet; beyond it the oldest are forgotten."""
MAX_KEPT = 4_000
"""Installations kept per partition and data plane: more than half an hour of half-second ticks."""

_Place = tuple[str, int]


@dataclass(slots=True)
class _Steps:
    """Of one partition and data plane: how far each installation had read, and when it came; both rising."""

    offsets: list[int] = field(default_factory=list[int])
    at_ms: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class _Plane:
    first_ms: int | None = None
    steps: dict[_Place, _Steps] = field(default_factory=dict[_Place, _Steps])
    waiting: dict[_Place, deque[tuple[int, int]]] = field(default_factory=dict[_Place, deque[tuple[int, int]]])


class LagMeter:
    """Matches state records with the installations that cover them. `lag_ms` counts lags to 1 ms."""

    def __init__(self, planes: Sequence[str]) -> None:
        self.lag_ms: Counter[int] = Counter()
        self._planes = {name: _Plane() for name in planes}

    def offer_state(self, topic: str, partition: int, offset: int, signal_ms: int) -> None:
        """Note a state record and the Kafka timestamp of the newest signal in it; offsets rise within a partition."""
        for plane in self._planes.values():
            waiting = plane.waiting.setdefault((topic, partition), deque(maxlen=MAX_WAITING))
            waiting.append((offset, signal_ms))

    def offer_installation(self, name: str, inputs: Sequence[InputOffsets], at_ms: int) -> None:
        """Note what a data plane installed, and when; in its own order."""
        plane = self._planes[name]
        if plane.first_ms is None:
            plane.first_ms = at_ms
        for topic in inputs:
            for partition, offset in enumerate(topic.offsets):
                steps = plane.steps.setdefault((topic.topic, partition), _Steps())
                if not steps.offsets or offset > steps.offsets[-1]:
                    steps.offsets.append(offset)
                    steps.at_ms.append(at_ms)
                    del steps.offsets[:-MAX_KEPT], steps.at_ms[:-MAX_KEPT]

    def match(self) -> None:
        """Count the lag of every state record that is covered by now; the others wait."""
        for plane in self._planes.values():
            for place, waiting in plane.waiting.items():
                steps = plane.steps.get(place)
                while steps is not None and waiting and waiting[0][0] < steps.offsets[-1]:
                    offset, signal_ms = waiting.popleft()
                    at_ms = steps.at_ms[bisect_right(steps.offsets, offset)]
                    if plane.first_ms is not None and signal_ms >= plane.first_ms:
                        self.lag_ms[at_ms - signal_ms] += 1
