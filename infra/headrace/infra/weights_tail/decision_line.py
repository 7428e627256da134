"""A decision record in one line, for people: what a tick was given, what it found, how, and what it cost."""

from datetime import UTC, datetime

from headrace.schemas.decisions import SolveRecord

HOLD = "HOLD"
"""The rung of a tick that decided nothing: it has no demand, no capacity and no columns, rather than none of them."""


class DecisionLines:
    """Folds the records of ticks, in their order, so that one that only held can say since when."""

    def __init__(self) -> None:
        self._held: SolveRecord | None = None
        self._from_start = False
        self._first = True

    def offer(self, record: SolveRecord) -> str:
        """Take the next tick; gives its line."""
        if record.rung != HOLD:
            self._held, self._first = None, False
            return decision_line(record)
        if self._held is None:
            self._held, self._from_start = record, not self._first
        self._first = False
        began = f"{_clock(self._held.tick_ms)}"
        since = f"version {self._held.version}, {began}" if self._from_start else f"{began} at the latest"
        return f"{_clock(record.tick_ms)} version {record.version}, {record.status} since {since}: {record.sentence}"


def decision_line(record: SolveRecord) -> str:
    """Say one tick that decided."""
    at = _clock(record.tick_ms)
    gap = "" if record.gap is None else f", within {100 * record.gap:.3f} %"
    took_ms = (record.build_us + record.solve_us + record.check_us) / 1000
    size = f"{_count(record.columns, 'column')} in {_count(record.components, 'part')}, {took_ms:.1f} ms"
    flow = f"{record.demand_rps:.1f} RPS of {record.capacity_rps:.1f}, {record.shed_rps:.1f} shed"
    return (
        f"{at} version {record.version}, {record.status} by {record.rung}{gap}: {flow}, "
        f"{record.moved_rps:.1f} moved; {size}; {record.sentence}"
    )


def _clock(tick_ms: int) -> str:
    return datetime.fromtimestamp(tick_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
