"""The span in which both the live solver and a shadow ticked: totals of two lengths of time cannot be compared.

    live      ├──────────────────────┤
    shadow           ├────────────┤
    common           ├────────────┤      what is outside it is left out, and told

A shadow that is started later, or stopped earlier, than the range is the usual case.
"""

from collections.abc import Sequence

from headrace.replay.core.history import HistoryError, Span
from headrace.replay.core.instants import instant
from headrace.replay.runs.verification import recorded_of
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.topics import SHADOW, SNAPSHOTS


def common_span(history: HistoryFolder) -> tuple[Span, tuple[str, ...]]:
    """Give the span that live and shadow ticks have in common, and a note of what is left out.

    The history's own span, without a note, where nothing is left out, or where one of the two has no whole tick.

    Raises:
        HistoryError: one of the two ended before the other began.
    """
    live, shadow = (_ticks_ms(history, role) for role in (SNAPSHOTS, SHADOW))
    if not live or not shadow:
        return history.span, ()
    begin, end = max(live[0], shadow[0]), min(live[-1], shadow[-1])
    if begin > end:
        spans = f"live ticks are {_told(live)}, those of the shadow {_told(shadow)}"
        raise HistoryError(f"live and shadow have no time in common: {spans}")
    span = Span(begin, end + 1)
    left = [sum(at not in span for at in ticks) for ticks in (live, shadow)]
    if not any(left):
        return history.span, ()
    note = (
        f"compared from {instant(begin)} to {instant(end)}, where both ticked; left out are {left[0]} of {len(live)} "
        f"live ticks and {left[1]} of {len(shadow)} of the shadow's"
    )
    return span, (note,)


def _ticks_ms(history: HistoryFolder, role: str) -> Sequence[int]:
    return sorted(tick.snapshot.commit.tick_ms for tick in recorded_of(history, role).ticks(history.span))


def _told(ticks: Sequence[int]) -> str:
    return f"{instant(ticks[0])} to {instant(ticks[-1])}"
