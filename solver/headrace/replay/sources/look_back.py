"""How far before a range an input topic must be read, so that the newest record of every key is in it: no further.

    600 s before ── all keys? ──► 7,200 s before ── all keys? ──► the log's beginning

Whether it is all of them is proved by the digest that the first tick's decision record holds of what the solver had
read (ADR 0020): the newest record of a key that has been silent for days may lie anywhere, and then the proof fails.
A history without ticks has no proof, and nobody who would miss such a key: there the second look is taken as enough.
"""

from collections.abc import Callable, Iterable, Iterator

from headrace.replay.sources.bounds import Bounds
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.inputs.digests import LogDigests

LOOK_BACK_MS = (600_000, 7_200_000)

Read = Callable[[int, Callable[[RawRecord], bool]], Iterable[RawRecord]]
"""Reads a topic from an instant on, until each partition's records lie past what is asked for."""


class Proof:
    """Finds the first tick's decision record as the decisions go by."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._record: SolveRecord | None = None

    def followed(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        """Give the records as they come."""
        for record in records:
            first = self._bounds.first
            if first is not None and self._record is None and record.timestamp_ms >= first.tick_ms:
                decoded: SolveRecord | Rejected = decode(SolveRecord, record.value, record.headers)
                if not isinstance(decoded, Rejected) and (decoded.epoch, decoded.version) == (
                    first.epoch,
                    first.version,
                ):
                    self._record = decoded
            yield record

    def begin_ms(self, topic: str, number: int, read: Read) -> int | None:
        """Give the instant from which an input topic is to be read; None for the log's beginning.

        Args:
            topic: its name.
            number: its place among the solver's inputs.
            read: reads it.
        """
        bounds, first = self._bounds, self._bounds.first
        if not bounds.ticks:
            return bounds.span.from_ms - LOOK_BACK_MS[-1]
        if first is None or not bounds.first_is_least or self._record is None or self._record.input_digests is None:
            return None
        ends = InputOffsets(topic, first.inputs[number].offsets)
        wanted = self._record.input_digests[number].digests
        for look_back_ms in LOOK_BACK_MS:
            from_ms, digests = bounds.span.from_ms - look_back_ms, LogDigests()
            for record in read(from_ms, lambda each: each.offset >= ends.offsets[each.partition]):
                digests.offer(record)
            if digests.digests((ends,))[0].digests == wanted:
                return from_ms
        return None
