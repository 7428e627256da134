"""Readings of one source partition, by target -> as few signals as their bounds allow, in the order of their places.

A reading carries its own place, so how they are packed makes no difference to a state; it only saves records. Signals
are given as their bytes: that is all that a bridge needs of them.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headrace.schemas.check_signals import Signal
from headrace.schemas.codec import encode, encode_plain
from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Demand, EngineSignals
from headrace.streams.core.canonical.translator import EngineTarget, Target, Translated
from headrace.streams.core.held import Wire

MAX_READINGS: Final = 1_000
MAX_SIZE: Final = 60_000
"""Numbers in one signal: with names, about a quarter of what a signals topic takes."""
_READING_SIZE: Final = 24


class Packed(NamedTuple):
    """One signal, ready to be published."""

    kind: type[Signal]
    key: bytes
    value: bytes


class Packs:
    """What was read of one source partition and is not yet published, in place.

    Args:
        topic: the source's.
        partition: the source's.
        mapping_hash: of the mapping that the readings were made by.
        source: names who publishes.
        has_lineage: whether the source can be read a second time.
    """

    def __init__(self, topic: str, partition: int, mapping_hash: str, source: str, *, has_lineage: bool = True) -> None:
        self._topic = topic
        self._partition = partition
        self._mapping_hash = mapping_hash
        self._source = source
        self._has_lineage = has_lineage
        self._open: dict[Target, tuple[list[Wire], int]] = {}
        self._done: list[Packed] = []

    def add(self, translated: Translated) -> None:
        """Take what one record held; records come in the order of their offsets."""
        self._done += (Packed(type(signal), signal.key, encode(signal)) for signal in translated.signals)
        for target, reading in translated.readings:
            histogram = reading["histogram"]
            size = _READING_SIZE if histogram is None else _READING_SIZE + 2 * len(histogram[1]["counts"])
            readings, so_far = self._open.get(target) or ([], 0)
            if readings and (so_far + size > MAX_SIZE or len(readings) >= MAX_READINGS):
                self._done.append(self._packed(target, readings))
                readings, so_far = [], 0
            readings.append(reading)
            self._open[target] = readings, so_far + size

    def take(self) -> Iterator[Packed]:
        """Give everything as signals, and begin anew."""
        yield from self._done
        for target, (readings, _) in self._open.items():
            yield self._packed(target, readings)
        self._open.clear()
        self._done.clear()

    def _packed(self, target: Target, readings: list[Wire]) -> Packed:
        # A period of no length: what readings cover is what lies between two of them, which the fold knows.
        end_ms = max(reading["at_ms"] for reading in readings)
        plain: dict[str, Any] = {
            "source": self._source,
            "period_start_ms": end_ms,
            "period_end_ms": end_ms,
            "series": ("array", readings),
            "lineage": self._lineage(readings[-1]),
        }
        if isinstance(target, EngineTarget):
            plain |= {"engine_id": target.engine_id, "vantage": target.vantage, "distributions": (), "status": None}
            return Packed(EngineSignals, target.engine_id.encode(), encode_plain(EngineSignals, plain))
        cluster, model, request_class = target
        plain |= {"cluster": cluster, "model": model, "request_class": request_class}
        plain |= {"offered": 0, "rejected": 0, "retries": 0}
        return Packed(Demand, RouteKey(*target).encode(), encode_plain(Demand, plain))

    def _lineage(self, last: Wire) -> tuple[str, dict[str, Any]] | None:
        if not self._has_lineage:
            return None
        place = {"topic": self._topic, "partition": self._partition, "offset": last["offset"], "index": last["index"]}
        return "headrace.Lineage", {**place, "mapping_hash": self._mapping_hash}
