"""Which records of the weights topic are the writer's own: what it wrote comes back in its order, all else is stray.

    wrote(key, value) ──► awaited ──► offer(record): the next awaited one? ── yes ──► forgotten
                                                                           └─ no ───► stray

A stray record, such as a tombstone by another hand, makes every reader's set differ from what the commits prove: it
stays on its last good snapshot until an epoch writes every route again. Records that the broker skips are no harm.
"""

from collections import deque

import xxhash

from headrace.schemas.raw import RawRecord

MAX_AWAITED = 1_000_000
"""More than this is not waited for: a writer whose topic cannot be read any more does not watch it."""

_Mark = tuple[bytes | None, int | None]


class OwnRecords:
    """Holds what was written and has not come back."""

    def __init__(self) -> None:
        self._awaited: deque[_Mark] = deque()
        self._watching = True
        self.stray: str | None = None

    def wrote(self, key: bytes, value: bytes | None) -> None:
        """Note a record, before it is sent."""
        self._awaited.append(_mark(key, value))
        if len(self._awaited) > MAX_AWAITED:
            self._watching = False
            self._awaited.clear()

    def offer(self, record: RawRecord) -> None:
        """Take the next record of the topic; the first that was not written here is kept as `stray`."""
        mark = _mark(record.key, record.value)
        if not self._watching or self.stray is not None:
            return
        if mark not in self._awaited:
            what = "a tombstone" if record.value is None else "a record"
            self.stray = f"{what} for {record.key!r} at offset {record.offset}"
            return
        while self._awaited.popleft() != mark:
            pass


def _mark(key: bytes | None, value: bytes | None) -> _Mark:
    return key, None if value is None else xxhash.xxh3_64_intdigest(value)
