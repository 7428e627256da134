"""How requests ended, by vantage, pane and model: counts that can be taken up from what a state says of them.

    pane      |  f-1  |   f   |  f+1  | newest |          f = newest - ceil(grace / pane)
              final <-|-> may still grow                  out of the window once `grid.count` panes behind the newest

Unlike latencies, outcomes seen from a gateway count: no network is in them, and who cannot be reached says nothing
himself. They are kept by vantage, since an engine and its gateways count the same requests; and by a newest pane of
their own, since a gateway speaks on for an engine that is silent, which must not keep that engine's state alive.

A pane says when nothing can be added to it any more, so that whoever sums up evidence over time takes each pane once.
Bounds: `MAX_MODELS` models a pane; what is counted of further ones is not.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from headrace.schemas.signals import Outcomes, Vantage
from headrace.schemas.state import OutcomePane, OutcomeState
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.panes import PaneGrid

MAX_MODELS: Final = 64
Row = tuple[str, str, int, int, int]
"""Vantage, model, pane, succeeded, failed."""


class OutcomePanes:
    """The outcomes of one engine, folded in place."""

    __slots__ = ("_grid", "_of")

    def __init__(self, grid: PaneGrid) -> None:
        self._grid = grid
        self._of: dict[Vantage, dict[int, dict[str, tuple[int, int]]]] = {}

    def __bool__(self) -> bool:
        """Say whether any outcome was reported in the window."""
        return bool(self._of)

    def copy(self) -> "OutcomePanes":
        """Give outcomes that are counted on without changing these."""
        copy = OutcomePanes(self._grid)
        copy._of = {v: {n: dict(pane) for n, pane in panes.items()} for v, panes in self._of.items()}
        return copy

    def add(self, vantage: Vantage, end_ms: int, outcomes: Iterable[Outcomes]) -> bool:
        """Count what ended in a period that ends at `end_ms`; says whether that still can be."""
        index, panes = self._grid.index(end_ms), self._of.get(vantage, {})
        if panes and index < self._first_open(max(panes)):
            return False
        for each in outcomes:
            self._count(vantage, index, each)
        return True

    def gain(self, model: str, delta: Delta, *, failed: bool) -> None:
        """Count a difference of a counter at the engine; that it is not late was seen to before it was taken."""
        if delta.value is not None:
            ended = round(delta.value)
            counts = Outcomes(model, 0, ended) if failed else Outcomes(model, ended, 0)
            self._count(Vantage.ENGINE, self._grid.index(delta.to_ms), counts)

    def evict(self, watermark_ms: int) -> None:
        """Drop the panes that left the window, by the newest pane of the vantage or of the engine itself."""
        for vantage, panes in list(self._of.items()):
            first = self._first(panes, watermark_ms)
            for index in [index for index in panes if index < first]:
                del panes[index]
            if not panes:
                del self._of[vantage]

    def states(self, watermark_ms: int) -> tuple[OutcomeState, ...] | None:
        """Give what a state says; None where no outcome was reported."""
        return tuple(sorted(self._states(watermark_ms), key=lambda s: (s.model, s.vantage))) or None

    def rows(self) -> list[Row]:
        """Give the counts as plain values, sorted."""
        return sorted(
            (vantage.value, model, index, *counts)
            for vantage, panes in self._of.items()
            for index, pane in panes.items()
            for model, counts in pane.items()
        )

    def take_up(self, rows: Iterable[Any]) -> None:
        """Take up what `rows` gave."""
        for vantage, model, index, succeeded, failed in rows:
            self._count(Vantage(vantage), int(index), Outcomes(str(model), int(succeeded), int(failed)))

    def take_up_states(self, states: Iterable[OutcomeState]) -> None:
        """Take up what a state says; panes of another length are another window's, and are left."""
        for state in states:
            for pane in state.panes if state.pane_ms == self._grid.pane_ms else ():
                counts = Outcomes(state.model, pane.succeeded, pane.failed)
                self._count(state.vantage, self._grid.index(pane.end_ms), counts)

    def _count(self, vantage: Vantage, index: int, outcomes: Outcomes) -> None:
        pane = self._of.setdefault(vantage, {}).setdefault(index, {})
        if outcomes.model in pane or len(pane) < MAX_MODELS:
            succeeded, failed = pane.get(outcomes.model, (0, 0))
            pane[outcomes.model] = succeeded + outcomes.succeeded, failed + outcomes.failed

    def _first(self, panes: Iterable[int], watermark_ms: int) -> int:
        return max(*panes, self._grid.index(watermark_ms)) - self._grid.count + 1

    def _first_open(self, newest: int) -> int:
        return newest + (-self._grid.grace_ms // self._grid.pane_ms)

    def _states(self, watermark_ms: int) -> Iterator[OutcomeState]:
        for vantage, panes in self._of.items():
            first, first_open = self._first(panes, watermark_ms), self._first_open(max(panes))
            of: dict[str, list[OutcomePane]] = {}
            for index, pane in sorted((index, pane) for index, pane in panes.items() if index >= first):
                for model, (succeeded, failed) in pane.items():
                    is_final = index < first_open
                    of.setdefault(model, []).append(OutcomePane(self._grid.end_ms(index), succeeded, failed, is_final))
            for model, found in of.items():
                yield OutcomeState(model, vantage, self._grid.pane_ms, tuple(found))
