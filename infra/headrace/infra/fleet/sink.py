"""Where the fleet's records go: `put(role, record, timestamp_ms)`. A test collects them, the demo publishes them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe

FleetRecord = EngineSignals | Demand | NetworkProbe


class Sink(Protocol):
    """Takes a record for the topic of `role` (see `headrace.schemas.topics`), dated in milliseconds since the epoch."""

    def put(self, role: str, record: FleetRecord, timestamp_ms: int) -> None:
        """Take one record; must not block."""
        ...


@dataclass(slots=True)
class MemorySink:
    """Keeps what it is given, in order; `drain()` hands it out as the log would, one partition per role."""

    kept: list[tuple[str, FleetRecord, int]] = field(default_factory=list[tuple[str, FleetRecord, int]])
    _offsets: dict[str, int] = field(default_factory=dict[str, int])

    def put(self, role: str, record: FleetRecord, timestamp_ms: int) -> None:
        """Keep one record."""
        self.kept.append((role, record, timestamp_ms))

    def drain(self) -> Iterator[RawRecord]:
        """Give what was kept since the last drain as raw records; the topic is the role, the partition 0."""
        taken, self.kept = self.kept, []
        for role, record, timestamp_ms in taken:
            offset = self._offsets.get(role, 0)
            self._offsets[role] = offset + 1
            yield RawRecord(role, 0, offset, timestamp_ms, record.key, encode(record))


class NullSink:
    """Forgets everything: for the speed of the simulation alone."""

    def put(self, role: str, record: FleetRecord, timestamp_ms: int) -> None:
        """Forget one record."""
