"""Readings of one source partition, by target -> as few signals as their bounds allow, in the order of their places.

A reading carries its own place, so how they are packed makes no difference to a state; it only saves records.
"""

from collections.abc import Iterator
from typing import Final

from headrace.schemas.check_signals import Signal
from headrace.schemas.series import Lineage, SeriesReading
from headrace.schemas.signals import Demand, EngineSignals
from headrace.streams.core.canonical.translator import EngineTarget, Target, Translated

MAX_READINGS: Final = 1_000
MAX_SIZE: Final = 60_000
"""Numbers in one signal: with names, about a quarter of what a signals topic takes."""
_READING_SIZE: Final = 24


class Packs:
    """What was read of one source partition and is not yet published, in place."""

    def __init__(self, topic: str, partition: int, mapping_hash: str, source: str) -> None:
        self._topic = topic
        self._partition = partition
        self._mapping_hash = mapping_hash
        self._source = source
        self._open: dict[Target, tuple[list[SeriesReading], int]] = {}
        self._done: list[Signal] = []

    def add(self, translated: Translated) -> None:
        """Take what one record held; records come in the order of their offsets."""
        self._done.extend(translated.signals)
        for target, reading in translated.readings:
            size = _READING_SIZE if reading.histogram is None else _READING_SIZE + 2 * len(reading.histogram.counts)
            readings, so_far = self._open.get(target) or ([], 0)
            if readings and (so_far + size > MAX_SIZE or len(readings) >= MAX_READINGS):
                self._done.append(self._signal(target, readings))
                readings, so_far = [], 0
            readings.append(reading)
            self._open[target] = readings, so_far + size

    def take(self) -> Iterator[Signal]:
        """Give everything as signals, and begin anew."""
        yield from self._done
        for target, (readings, _) in self._open.items():
            yield self._signal(target, readings)
        self._open.clear()
        self._done.clear()

    def _signal(self, target: Target, readings: list[SeriesReading]) -> EngineSignals | Demand:
        last = readings[-1]
        lineage = Lineage(self._topic, self._partition, last.offset or 0, last.index or 0, self._mapping_hash)
        # A period of no length: what readings cover is what lies between two of them, which the fold knows.
        end_ms = max(reading.at_ms for reading in readings)
        if isinstance(target, EngineTarget):
            engine_id, vantage = target
            return EngineSignals(engine_id, self._source, vantage, end_ms, end_ms, (), None, tuple(readings), lineage)
        return Demand(*target, self._source, end_ms, end_ms, 0, 0, 0, tuple(readings), lineage)
