"""aiokafka's fetcher, so that a header name that is not UTF-8 costs a record its headers, and no worker its life.

aiokafka decodes header names while it takes a batch apart; one that is no UTF-8 raises out of the fetch, at the same
record for ever. Only then is the fetch taken apart anew, in Python, from the next record on, and the headers of the
records that cannot be read are taken as none: their values are decoded or dead-lettered as all are.
"""

from typing import Any, cast

from aiokafka.consumer import fetcher  # type: ignore[import-untyped]  # aiokafka ships no types
from aiokafka.record import default_records, memory_records  # type: ignore[import-untyped]  # as above
from aiokafka.record.util import decode_varint  # type: ignore[import-untyped]  # as above

# What aiokafka has in Python beside its extension: only that can be built upon, and begun anew.
_fetcher: Any = fetcher
_Records: Any = cast("Any", memory_records)._MemoryRecordsPy  # noqa: SLF001 - as above
_Batch: Any = cast("Any", default_records)._DefaultRecordBatchPy  # noqa: SLF001 - as above
_Record: Any = cast("Any", default_records)._DefaultRecordPy  # noqa: SLF001 - as above
_Partition: Any = _fetcher.PartitionRecords


class KeptRecords(_Records):  # type: ignore[misc]  # aiokafka ships no types
    """The batches of one fetch; `forgiving` says whether they are taken apart in Python, headers or not."""

    def __init__(self, fetched: bytes) -> None:
        super().__init__(fetched or b"")
        self.fetched = fetched
        self.forgiving = False

    def next_batch(self) -> Any:  # noqa: ANN401 - aiokafka ships no types
        """Give the next batch; None behind the last."""
        following = self._next_slice
        if not self.forgiving or following is None or following[self.MAGIC_OFFSET] < 2:
            return cast("Any", super().next_batch())
        super().next_batch()
        return ForgivingBatch(following)


class ForgivingBatch(_Batch):  # type: ignore[misc]  # aiokafka ships no types
    """A batch, of whose records those with a header name that is not UTF-8 have no headers."""

    _pos: int
    _buffer: bytearray

    def _read_msg(self) -> Any:  # noqa: ANN401 - aiokafka ships no types
        try:
            return cast("Any", super()._read_msg())
        except UnicodeDecodeError:
            return self._without_headers()

    def _without_headers(self) -> Any:  # noqa: ANN401 - aiokafka ships no types
        length, start = decode_varint(self._buffer, self._pos)
        _, at = decode_varint(self._buffer, start)  # attributes: none are defined
        behind_ms, at = decode_varint(self._buffer, at)
        behind, at = decode_varint(self._buffer, at)
        key, at = self._bytes(at)
        value, at = self._bytes(at)
        self._pos = start + length
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        stamp = self.max_timestamp if appended else self.first_timestamp + behind_ms
        return _Record(self.base_offset + behind, stamp, self.timestamp_type, key, value, [])

    def _bytes(self, at: int) -> tuple[bytes | None, int]:
        length, at = decode_varint(self._buffer, at)
        return (None, at) if length < 0 else (bytes(self._buffer[at : at + length]), at + length)


class ForgivingPartition(_Partition):  # type: ignore[misc]  # aiokafka ships no types
    """A fetch of one partition, which begins anew behind the last record given where a header cannot be read."""

    _records: KeptRecords
    _aborted_producers: set[int]

    def __init__(self, tp: object, records: KeptRecords, aborted_transactions: Any, *rest: object) -> None:  # noqa: ANN401 - aiokafka's signature
        self._aborted = list(aborted_transactions or [])
        super().__init__(tp, records, self._aborted, *rest)

    def __next__(self) -> Any:  # noqa: ANN401 - aiokafka ships no types
        try:
            return cast("Any", super().__next__())
        except UnicodeDecodeError:
            self._begin_anew()
            return cast("Any", super().__next__())

    def _begin_anew(self) -> None:
        self._records = KeptRecords(self._records.fetched)
        self._records.forgiving = True
        self._aborted_transactions = sorted(self._aborted, key=lambda each: each[1])
        self._aborted_producers = set()
        # Records before `next_fetch_offset` are passed over by aiokafka itself.
        self._records_iterator = self._unpack_records()


def forgive_headers() -> None:
    """Let every consumer of aiokafka in this process read so from now on; more than once is as once."""
    _fetcher.MemoryRecords = KeptRecords
    _fetcher.PartitionRecords = ForgivingPartition
