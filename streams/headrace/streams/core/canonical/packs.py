"""Readings of one source partition, by target -> as few signals as their bounds allow, in the order of their places.

A reading carries its own place, so how they are packed makes no difference to a state; it only saves records. Signals
are given as their bytes: that is all that a bridge needs of them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.schemas.check_signals import Signal
from headrace.schemas.codec import encode, prefix
from headrace.schemas.ids import RouteKey
from headrace.schemas.signals import Demand, EngineSignals
from headrace.streams.core.canonical.translator import EngineTarget, Target, Translated
from headrace.streams.core.canonical.wire import Told, enum_word, lineage_block, long, readings_block, text

MAX_READINGS: Final = 1_000
MAX_SIZE: Final = 60_000
"""Numbers in one signal: with names, about a quarter of what a signals topic takes."""
_NULL, _EMPTY, _ZERO = b"\x00", b"\x00", b"\x00"


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
        self._open: dict[Target, _Pack] = {}
        self._done: list[Packed] = []

    def add(self, translated: Translated) -> None:
        """Take what one record held; records come in the order of their offsets."""
        self._done += (Packed(type(signal), signal.key, encode(signal)) for signal in translated.signals)
        for target, told in translated.readings:
            pack = self._open.get(target)
            if pack is None:
                pack = self._open[target] = _Pack()
            elif pack.size + told.size > MAX_SIZE or len(pack.told) >= MAX_READINGS:
                self._done.append(self._packed(target, pack.told))
                pack = self._open[target] = _Pack()
            pack.told.append(told)
            pack.size += told.size

    def take(self) -> Iterator[Packed]:
        """Give everything as signals, and begin anew."""
        yield from self._done
        for target, pack in self._open.items():
            yield self._packed(target, pack.told)
        self._open.clear()
        self._done.clear()

    def _packed(self, target: Target, told: list[Told]) -> Packed:
        # A period of no length: what readings cover is what lies between two of them, which the fold knows.
        end = long(max([each.at_ms for each in told]))
        lineage = lineage_block(self._topic, self._partition, told[-1], self._mapping_hash)
        rest = readings_block(told) + (lineage if self._has_lineage else _NULL)
        if isinstance(target, EngineTarget):
            who = text(target.engine_id) + text(self._source) + enum_word(target.vantage)
            # No distributions, no status.
            value = b"".join((prefix(EngineSignals), who, end, end, _EMPTY, _NULL, rest, _NULL))
            return Packed(EngineSignals, target.engine_id.encode(), value)
        who = b"".join(map(text, target)) + text(self._source)
        # Nothing offered, rejected or retried but what the readings say.
        value = b"".join((prefix(Demand), who, end, end, _ZERO, _ZERO, _ZERO, rest))
        return Packed(Demand, RouteKey(*target).encode(), value)


class _Pack:
    """Readings of one target that wait, and about how many numbers they hold."""

    __slots__ = ("size", "told")

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.size = 0
