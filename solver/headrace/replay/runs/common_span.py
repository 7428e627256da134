"""The span that compared runs have in common: totals of two lengths of time cannot be compared.

    live      ├──────────────────────┤
    shadow           ├────────────┤
    common           ├────────────┤      what is outside it is left out, and told

A shadow that is started later, or stopped earlier, than the range is the usual case. Signals that are folded anew tick
from a while into the range on, and by their own periods: they have in common with the recorded ticks what lies between
whole periods of the longest.
"""

from collections.abc import Sequence

from headrace.replay.core.history import HistoryError, Span
from headrace.replay.core.instants import instant
from headrace.replay.core.play_signals import SETTLE_MS, instants
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


def span_anew(history: HistoryFolder, recorded_period_ms: int, periods_ms: Sequence[int]) -> Span:
    """Give the span that recorded ticks, and ticks by these periods over signals, have in common.

    Raises:
        HistoryError: they have none.
    """
    recorded = _ticks_ms(history, SNAPSHOTS)
    longest = max(recorded_period_ms, *periods_ms)
    firsts = [instants(history.span, period)[:1] for period in periods_ms]
    begin = max(recorded[0], *(each[0] for each in firsts if each))
    begin, end = -(-begin // longest) * longest, min(recorded[-1] + recorded_period_ms, history.span.to_ms)
    end = end // longest * longest
    if end <= begin or not all(firsts):
        told = f"recorded ticks are {_told(recorded)}, those over signals begin {SETTLE_MS / 1000:g} s into the range"
        raise HistoryError(f"recorded and folded signals have no whole period of {longest} ms in common: {told}")
    return Span(begin, end)


def _ticks_ms(history: HistoryFolder, role: str) -> Sequence[int]:
    return sorted(tick.snapshot.commit.tick_ms for tick in recorded_of(history, role).ticks(history.span))


def _told(ticks: Sequence[int]) -> str:
    return f"{instant(ticks[0])} to {instant(ticks[-1])}"
