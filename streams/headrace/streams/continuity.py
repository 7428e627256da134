"""No signal is passed over: the offsets of a partition that reach the fold follow one another.

    first expected = where the partition is taken up      then = the last one + 1      seen again = a duplicate, fine
    before the tables are recovered             nothing may come

The guard in each state drops what is at or below its applied offset, so a signal that was passed over could never come
again: its state would lack it for ever. An offset beyond the expected one is therefore looked up in the log itself:
where the log has nothing in between (compacted, expired, or markers of a transaction) it is taken; else the transport
lost signals, which raises `SignalsLostError` before anything is folded, and the worker ends and reads them again. The
same holds for a signal that comes before its table was recovered: it would be folded into a state that is too old.
"""

import asyncio
from collections.abc import Iterable, Mapping

from headrace.schemas.errors import HeadraceError
from headrace.streams.log_offsets import LogOffsets, Place


class SignalsLostError(HeadraceError):
    """The transport skipped signals that are in the log, or gave them too early."""


class Continuity:
    """The next expected offset of each owned partition."""

    def __init__(self, log_offsets: LogOffsets) -> None:
        self._log_offsets = log_offsets
        self._expected: dict[Place, int] = {}
        self._recovered = False

    def interrupt(self) -> None:
        """Note that partitions were revoked: until `begin`, nothing may come."""
        self._recovered = False

    def begin(self, starts: Mapping[Place, int]) -> None:
        """Take where each owned partition is read from, once the tables are recovered and before signals flow."""
        self._expected = dict(starts)
        self._recovered = True

    async def check(self, seen: Iterable[tuple[Place, int]]) -> None:
        """Hold the offsets of a batch, in order, against the expected ones.

        Raises:
            SignalsLostError: the log holds a record between the expected offset and the one that came, or the tables
                are not recovered.
        """
        if not self._recovered:
            raise SignalsLostError("signals came before the tables were recovered")
        for place, offset in seen:
            expected = self._expected.get(place, offset)
            if offset > expected:
                first = await asyncio.to_thread(self._log_offsets.first_from, place, expected)
                # None: all that is committed ends before; what came since was in between, and was aborted.
                if first is not None and first < offset:
                    raise SignalsLostError(f"{place[0]}[{place[1]}]: {offset} came; expected {expected}")
            self._expected[place] = max(expected, offset + 1)
