"""Which engines exist: the keys of the compacted `fleet` topic, followed beside the signals."""

import asyncio

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.log import Log
from headrace.schemas.overrides import is_override_key
from headrace.schemas.raw import RawRecord

POLL_S = 0.5


class FleetWatch:
    """The known engines. `key in watch` asks; `version` counts the changes."""

    def __init__(self, reader: CompactedReader, log: Log, registry: SchemaSource | None = None) -> None:
        self._reader = reader
        self._log = log
        self._registry = registry
        self._engines: set[bytes] = set()
        self.version = 0
        self.caught_up = asyncio.Event()

    def __contains__(self, key: object) -> bool:
        return key in self._engines

    def __len__(self) -> int:
        return len(self._engines)

    async def run(self) -> None:
        """Follow the topic until cancelled. The client blocks, so it is polled in a thread of its own."""
        while True:
            for record in await asyncio.to_thread(self._reader.poll, POLL_S):
                self.take(record)
            if self._reader.caught_up and not self.caught_up.is_set():
                self._log.info("fleet read to its end", engines=len(self._engines))
                self.caught_up.set()

    def take(self, record: RawRecord) -> None:
        """Take in one record: a spec makes its engine known, a tombstone unknown, an unreadable one changes nothing.

        Operators' overrides stand in the same topic; they make no engine known.
        """
        if record.key is None or is_override_key(record.key):
            return
        if record.value is None:
            if record.key in self._engines:
                self._engines.remove(record.key)
                self.version += 1
            return
        spec = decode(EngineSpec, record.value, record.headers, self._registry)
        if isinstance(spec, Rejected):
            self._log.warning("unreadable fleet record", offset=record.offset, reason=spec.reason, detail=spec.detail)
        elif spec.key != record.key:
            self._log.warning("fleet record under another key", offset=record.offset, engine_id=spec.engine_id)
        elif record.key not in self._engines:
            self._engines.add(record.key)
            self.version += 1
