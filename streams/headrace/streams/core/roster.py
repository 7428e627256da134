"""The latency series of one engine, by number: at most MAX_SERIES; an idle one gives its place to a new one."""

import struct
from collections.abc import Container

from headrace.schemas.signals import Metric
from headrace.streams.core import packing
from headrace.streams.core.series import METRICS, Series
from headrace.streams.core.smoothing import Smoothed

MAX_SERIES = 1024
"""Most (model, metric) pairs that one engine's state holds; what is beyond is dropped, and the state says so."""
_SERIES = struct.Struct("<BBBdq")  # length of the model, metric, has a base, base, its event time

Name = tuple[str, Metric]


class Roster:
    """Series by number, and numbers by name."""

    __slots__ = ("_names", "_number", "series")

    def __init__(self) -> None:
        self.series: list[Series] = []
        self._number: dict[Name, int] = {}
        self._names: list[bytes] = []

    def __len__(self) -> int:
        return len(self.series)

    def __contains__(self, name: object) -> bool:
        return name in self._number

    def copy(self) -> "Roster":
        """Give a roster that changes without this one."""
        copy = Roster()
        copy.series = [series.copy() for series in self.series]
        copy._number, copy._names = dict(self._number), list(self._names)
        return copy

    def idle(self, used: Container[int], named: Container[Name]) -> list[int]:
        """Give the series that neither the window nor a signal has anything of; the one smoothed longest ago last."""
        idle = [
            number
            for number, series in enumerate(self.series)
            if number not in used and (series.model, series.metric) not in named
        ]
        return sorted(idle, key=lambda number: (self._smoothed_at_ms(number), number), reverse=True)

    def numbered(self, name: Name, idle: list[int]) -> int | None:
        """Give a series' number, a new one where it has none; None where there is no place, and no idle one to take."""
        number = self._number.get(name)
        if number is not None:
            return number
        if len(self.series) < MAX_SERIES:
            return self.add(Series(*name))
        if not idle:
            return None
        number = idle.pop()
        del self._number[self.series[number].model, self.series[number].metric]
        self._number[name] = number
        self.series[number], self._names[number] = Series(*name), name[0].encode()
        return number

    def add(self, series: Series) -> int:
        """Give a new series the next number."""
        number = self._number[series.model, series.metric] = len(self.series)
        self.series.append(series)
        self._names.append(series.model.encode())
        return number

    def pack(self) -> bytes:
        """Give the series' bytes, in the order of their numbers."""
        parts: list[bytes] = []
        for series, name in zip(self.series, self._names, strict=True):
            base = series.base
            value, at_ms = (0.0, 0) if base is None else base
            parts.append(_SERIES.pack(len(name), METRICS.index(series.metric), base is not None, value, at_ms))
            parts.append(name)
        return b"".join(parts)

    def read(self, reader: packing.Reader, count: int) -> None:
        """Read what `pack` wrote."""
        for _ in range(count):
            length, metric_number, has_base, value, at_ms = reader.take(_SERIES)
            model, metric = reader.take_bytes(length).decode("utf-8", "replace"), METRICS[int(metric_number)]
            self.add(Series(model, metric, Smoothed(value, at_ms) if has_base else None))

    def _smoothed_at_ms(self, number: int) -> int:
        base = self.series[number].base
        return -1 if base is None else base.at_ms
