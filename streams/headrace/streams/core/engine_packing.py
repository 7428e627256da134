"""What an engine's state carries so that its fold goes on from it: `panes`, and `series` where it has a ledger.

    panes    version u8 | pane_ms u32 | open_from i64 | status end q, dropped B, series H, panes H | series | panes
    series   the ledger's bytes, and beside them what the fold holds itself: status, period, kinds, outcomes

Both are read back into an accumulator; bytes of another hand raise one of `packing.UNREADABLE`, or begin a new ledger.
"""

import struct
from collections.abc import Sequence
from typing import Final, Protocol

from headrace.schemas.series import TbotKind
from headrace.schemas.signals import EngineStatus, Health
from headrace.schemas.state import EngineState, Invalid
from headrace.streams.core import packing
from headrace.streams.core.engine_pane import EnginePane, read_pane
from headrace.streams.core.engine_telling import Folded
from headrace.streams.core.ledger import Ledger
from headrace.streams.core.roster import Roster

_STATUS: Final = struct.Struct("<qBHH")
"""End of the status's period, whether series were dropped, number of series, number of panes."""
_STATUS_FIELDS: Final = 7


class Kept(Folded, Protocol):
    """What is packed of an engine's fold, and read back into it; see `EngineAccumulator`."""

    roster: Roster
    entry_bytes: int


def packed_panes(of: Kept, panes: Sequence[tuple[int, EnginePane]]) -> bytes:
    """Give the panes' bytes, oldest first, with the names of their series."""
    window = of.window
    open_from = 0 if window.open_from is None else window.open_from
    parts = [
        packing.head(window.grid.pane_ms, open_from),
        _STATUS.pack(of.status_end_ms, of.dropped, len(of.series), len(panes)),
        of.roster.pack(),
    ]
    parts.extend(pane.pack(index, index * window.grid.pane_ms) for index, pane in panes)
    return b"".join(parts)


def read_panes(into: Kept, state: EngineState) -> None:
    """Read what `packed_panes` gave into a new accumulator.

    Raises:
        PackingError: the bytes are something else, or of another pane length; others of `packing.UNREADABLE`, too.
    """
    window, reader = into.window, packing.Reader(state.panes)
    open_from = packing.read_head(reader, window.grid.pane_ms)
    if state.invalid is not Invalid.NO_SIGNAL_YET:
        window.open_from = open_from
    into.status_end_ms, dropped, series_count, pane_count = reader.take(_STATUS)
    into.dropped = bool(dropped)
    into.roster.read(reader, series_count)
    for _ in range(pane_count):
        index, pane = read_pane(reader, window.grid)
        window.panes[index] = pane
        for number, entry in pane.entries.items():
            into.series[number].add(entry)
            into.entry_bytes += entry.size
    reader.end()


def packed_series(of: Kept, ledger: Ledger) -> bytes:
    """Give the ledger's bytes, with what the fold holds itself; a state's own fields tell what is not final, too."""
    own = [getattr(of.status, name) for name in of.status.__slots__]
    own += [of.period_ms, sorted(of.tbot_kinds.items())]
    return ledger.pack([*own, of.outcomes.rows()] if of.outcomes else own)


def read_series(into: Kept, state: EngineState) -> None:
    """Take up the ledger; bytes of another hand begin a new one, whose series begin with a baseline."""
    if state.series is None:
        into.outcomes.take_up_states(state.outcomes or ())
        return
    try:
        into.ledger, own = Ledger.read(state.series)
        status, (period_ms, *later) = own[:_STATUS_FIELDS], own[_STATUS_FIELDS:]
        into.status, into.period_ms = EngineStatus(Health(status[0]), *status[1:]), period_ms
        # Older builds knew of no kinds, and then of no outcomes.
        kinds, outcomes = [*later, (), ()][:2]
        into.tbot_kinds = {model: TbotKind(kind) for model, kind in kinds}
        into.outcomes.take_up(outcomes)
    except packing.UNREADABLE:
        into.ledger = None
