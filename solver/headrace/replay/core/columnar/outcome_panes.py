"""How requests ended, of many engines as arrays: what `headrace.streams.core.outcomes.OutcomePanes` holds of each.

    engine e, vantage v, series s (a model as seen from a vantage), slot q mod C of pane q, C panes a window
    newest             (E, V)      newest pane of a vantage         held   (E, V, C)  which pane a slot holds
    succeeded, failed  (E, S, C)   ABSENT where not counted         named  (E, S)     whether it was ever counted

A vantage's window ends at its own newest pane, or at the engine's where that is later. What lies before it has left,
and is passed over where it is read; a vantage whose newest pane has left knows no pane, so nothing is late for it.
Mutable inside for speed; nothing outside sees it but through `Rows`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.replay.core.columnar.cursor import Ints, Marks
from headrace.replay.core.columnar.signals import VANTAGES
from headrace.schemas.signals import Vantage
from headrace.schemas.state import OutcomePane, OutcomeState
from headrace.streams.core.outcomes import Row
from headrace.streams.core.panes import PaneGrid

NOWHERE = -(1 << 62)
ABSENT = -1
_FIRST_ENGINES, _FIRST_SERIES = 64, len(VANTAGES)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeColumns:
    """How requests ended at n engines: k series over p panes.

    Attributes:
        pane_ms: length of a pane.
        names: model and vantage of each series, by number.
        series_of: (n,) how many series each engine has.
        series: (k,) their numbers.
        panes_of: (k,) how many panes each has.
        end_ms, succeeded, failed: (p,)
        is_final: (p,)
    """

    pane_ms: int
    names: tuple[tuple[str, Vantage], ...]
    series_of: Ints
    series: Ints
    panes_of: Ints
    end_ms: Ints
    succeeded: Ints
    failed: Ints
    is_final: Marks

    def states(self) -> Iterator[tuple[OutcomeState, ...] | None]:
        """Give what each engine's state says; None where nobody counted."""
        counts = zip(
            self.end_ms.tolist(), self.succeeded.tolist(), self.failed.tolist(), self.is_final.tolist(), strict=True
        )
        # Panes end together and their counts are small: most panes are like another's.
        alike: dict[tuple[int, int, int, bool], OutcomePane] = {}
        panes = [alike.get(each) or alike.setdefault(each, OutcomePane(*each)) for each in counts]
        ends: list[int] = np.cumsum(self.panes_of).tolist()
        numbers: list[int] = self.series.tolist()
        named = [self.names[s] for s in numbers]
        told = [
            OutcomeState(model, vantage, self.pane_ms, tuple(panes[a:b]))
            for (model, vantage), a, b in zip(named, [0, *ends], ends, strict=False)
        ]
        last: list[int] = np.cumsum(self.series_of).tolist()
        return (tuple(told[a:b]) or None for a, b in zip([0, *last], last, strict=False))


class OutcomeArrays:
    """Arrays by engine; `grow` makes room. `own` is the pane of an engine's own newest signal."""

    newest: Ints
    held: Ints
    named: Marks
    succeeded: Ints
    failed: Ints

    def __init__(self, grid: PaneGrid) -> None:
        self.grid = grid
        self._allocate(_FIRST_ENGINES, _FIRST_SERIES)

    def grow(self, engines: int, models: int) -> None:
        """Make room for so many engines and models."""
        rows, columns = self.named.shape
        series = models * len(VANTAGES)
        if engines > rows or series > columns:
            self._allocate(2 * engines if engines > rows else rows, 2 * series if series > columns else columns)

    def clear(self, e: int) -> None:
        """Make an engine's row as if nobody had counted."""
        for name, (_, empty) in self._shapes(0, 0).items():
            getattr(self, name)[e] = empty

    def add(self, who: tuple[Ints, Ints, Ints], own: Ints, end_ms: Ints, counts: tuple[Ints, Ints]) -> None:
        """Count what ended in periods, (m,); an engine comes with one period at most, and with each model once.

        Args:
            who: engine, vantage, and model of each count.
            own: of its engine.
            end_ms: of its period.
            counts: succeeded and failed.
        """
        e, v, model = who
        index, newest = -(-end_ms // self.grid.pane_ms) - 1, self._newest(e, v, own)
        late = index < newest + self._first_open()
        kept = np.flatnonzero(~late & (index > np.maximum(newest, own) - self.grid.count))
        e, v, index = e[kept], v[kept], index[kept]
        self.newest[e, v] = np.maximum(newest[kept], index)
        self._hold(e, v, index)
        s, slot = model[kept] * len(VANTAGES) + v, index % self.grid.count
        self.named[e, s] = True
        for held, counted in zip((self.succeeded, self.failed), counts, strict=True):
            held[e, s, slot] = np.maximum(held[e, s, slot], 0) + counted[kept]

    def told(self, e: Ints, own: Ints, models: Sequence[str]) -> OutcomeColumns:
        """Give what the states of engines say."""
        names = [(model, vantage) for model in models for vantage in VANTAGES]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        row, place = np.nonzero(self.named[e][:, order])
        series = order[place]
        v, engine = series % len(VANTAGES), e[row]
        newest = self._newest(engine, v, own[row])
        panes = (np.maximum(newest, own[row]) - self.grid.count + 1)[:, None] + np.arange(self.grid.count)
        slot = panes % self.grid.count
        succeeded = self.succeeded[engine[:, None], series[:, None], slot]
        there = (self.held[engine[:, None], v[:, None], slot] == panes) & (succeeded != ABSENT)
        some, which = np.nonzero(there)
        panes_of = there.sum(axis=1)
        kept = panes_of > 0
        pane = panes[some, which]
        return OutcomeColumns(
            pane_ms=self.grid.pane_ms,
            names=tuple(names),
            series_of=np.bincount(row[kept], minlength=len(e)),
            series=series[kept],
            panes_of=panes_of[kept],
            end_ms=(pane + 1) * self.grid.pane_ms,
            succeeded=succeeded[some, which],
            failed=self.failed[engine[some], series[some], slot[some, which]],
            is_final=pane < newest[some] + self._first_open(),
        )

    def load(self, e: int, rows: Iterable[Row], models: Sequence[bytes]) -> None:
        """Fill a row with what `OutcomePanes.rows` gives, of panes of one window a vantage."""
        for vantage, model, index, succeeded, failed in rows:
            v, slot = VANTAGES.index(Vantage(vantage)), index % self.grid.count
            if index < self.held[e, v, slot]:
                continue
            self._hold(np.array([e]), np.array([v]), np.array([index]))
            s = models.index(model.encode()) * len(VANTAGES) + v
            self.newest[e, v] = max(int(self.newest[e, v]), index)
            self.named[e, s] = True
            self.succeeded[e, s, slot], self.failed[e, s, slot] = succeeded, failed

    def rows(self, e: int, own: int, models: Sequence[str]) -> list[Row]:
        """Give a row as `OutcomePanes.take_up` takes it."""
        told = self.told(np.array([e]), np.array([own]), models)
        found: list[Row] = []
        for state in next(told.states()) or ():
            for pane in state.panes:
                index = self.grid.index(pane.end_ms)
                found.append((state.vantage.value, state.model, index, pane.succeeded, pane.failed))
        return found

    def _shapes(self, rows: int, columns: int) -> dict[str, tuple[tuple[int, ...], int]]:
        """Give each array's shape and what stands where nothing is."""
        panes, vantages = self.grid.count, len(VANTAGES)
        return {
            "newest": ((rows, vantages), NOWHERE),
            "held": ((rows, vantages, panes), NOWHERE),
            "named": ((rows, columns), False),
            "succeeded": ((rows, columns, panes), ABSENT),
            "failed": ((rows, columns, panes), ABSENT),
        }

    def _allocate(self, rows: int, columns: int) -> None:
        for name, (shape, empty) in self._shapes(rows, columns).items():
            made = np.full(shape, empty)
            old = getattr(self, name, None)
            if old is not None:
                made[tuple(slice(length) for length in old.shape)] = old
            setattr(self, name, made)

    def _newest(self, e: Ints, v: Ints, own: Ints) -> Ints:
        """Give the newest panes of vantages; NOWHERE where it has left the window."""
        newest = self.newest[e, v]
        return np.where(newest > own - self.grid.count, newest, NOWHERE)

    def _first_open(self) -> int:
        """Give where the first pane lies that may still grow, counted from the newest."""
        return -self.grid.grace_ms // self.grid.pane_ms

    def _hold(self, e: Ints, v: Ints, index: Ints) -> None:
        """Give panes their slots; what a slot held before has left the window."""
        slot = index % self.grid.count
        new = self.held[e, v, slot] != index
        e, v, slot = e[new], v[new], slot[new]
        self.held[e, v, slot] = index[new]
        for counts in (self.succeeded, self.failed):
            counts.reshape(len(counts), -1, len(VANTAGES), self.grid.count)[e, :, v, slot] = ABSENT
