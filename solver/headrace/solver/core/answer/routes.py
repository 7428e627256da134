"""A plan's weights -> the records of its routes. A route that says the same as before keeps its old record."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import RouteWeights
from headrace.solver.core.answer.apportion import weigh
from headrace.solver.core.answer.failover import Failovers
from headrace.solver.core.answer.fallback import Fallbacks
from headrace.solver.core.answer.headroom import headrooms
from headrace.solver.core.answer.reasons import route_sentence
from headrace.solver.core.answer.refusals import Refusals
from headrace.solver.core.answer.retry import retry_ratios
from headrace.solver.core.answer.shed_by_pins import held_words, shed_by_pins
from headrace.solver.core.answer.targets import Listed, TargetWriter
from headrace.solver.core.answer.unchanged import TOGETHER, New, changed_rows
from headrace.solver.core.program.layout import Entries, Floats, Ints, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.records_before import DEMAND_HELD
from headrace.solver.settings import SolverSettings

Bools = npt.NDArray[np.bool_]
LAST_BITS = 1e-9
"""Shares nearer to 0 or 1 than this are 0 or 1."""


class RouteWriter:
    """Writes the routes of one plan. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan, settings: SolverSettings) -> None:
        self._layout = layout
        self._plan = plan
        self._surge_load = settings.surge_load
        retry = retry_ratios(layout, plan, settings)
        self._retry: list[float] = retry.tolist()
        self._excluded = Refusals(layout).of_all()
        self._fallbacks = Fallbacks(layout)
        self._failovers = Failovers(layout, plan, self._fallbacks.shared, settings.failover_spare)
        self._targets = TargetWriter(layout, plan)
        self._binding = shed_by_pins(layout, plan)
        self.weights: Entries = weigh(layout, plan)
        start = np.searchsorted(self.weights.row, np.arange(len(layout.rows) + 1))
        self._start: list[int] = start.tolist()
        shed = _shed_ratios(layout, plan, start)
        self._shed: list[float] = shed.tolist()
        self._new = New(self.weights, shed, retry, self._excluded, self._targets.pinned, self._targets.ttft_s)
        self._ppm: list[int] = self.weights.ppm.tolist()
        engines: list[int] = self.weights.engine.tolist()
        ids = [e.engine_id for e in layout.engines]
        self._ids = [ids[e] for e in engines]

    def write(self, epoch: int, version: int, *, afresh: bool) -> tuple[RouteWeights, ...]:
        """Give each row's record: the previous one itself where it says the same and need not be written `afresh`."""
        old = self._layout.old
        rows = np.arange(len(old)) if afresh else changed_rows(self._layout, self._new, self._fallbacks)
        routes: dict[int, RouteWeights] = {}
        for first in range(0, len(rows), TOGETHER):
            some = rows[first : first + TOGETHER]
            routes |= zip(some.tolist(), self._written(some, epoch, version), strict=True)
        # A row without an old record is always written.
        if not routes:
            return tuple([route for route in old if route is not None])
        return tuple(routes[row] if row in routes or was is None else was for row, was in enumerate(old))

    def _written(self, rows: Ints, epoch: int, version: int) -> Iterator[RouteWeights]:
        listed, near = self._listed(rows), self._fallbacks.near(rows)
        failover = self._failovers.of(rows, near, self.weights)
        place = np.repeat(np.arange(len(rows)), np.diff(listed.start))
        kept = failover.kept(place, listed.engine)
        headroom = headrooms(self._layout, self._plan, listed, failover.load, self._surge_load)
        targets = self._targets.write(listed, kept, headroom)
        prices: list[float] | None = None if self._plan.prices is None else self._plan.prices.row.tolist()
        numbers: list[int] = rows.tolist()
        parts = zip(numbers, targets, self._fallbacks.of(near), failover.targets, strict=True)
        for row, of_row, fallback, lost in parts:
            own = slice(self._start[row], self._start[row + 1])
            asked, shed = self._layout.rows[row], self._shed[row]
            marginal = prices[row] * asked.work if prices is not None and own.stop > own.start else None
            named = list(zip(self._ids[own], self._ppm[own], strict=True))
            held = held_words(self._binding.get(row, ()), shed * asked.demand_rps)
            said = route_sentence(asked.demand_rps, named, shed, marginal, held)
            yield RouteWeights(
                cluster=asked.route.cluster,
                model=asked.route.model,
                request_class=asked.route.request_class,
                tier=asked.tier,
                epoch=epoch,
                version=version,
                demand_rps=asked.demand_rps,
                targets=of_row,
                excluded=self._excluded[row],
                fallback=fallback,
                shed_ratio=shed,
                retry_ratio=self._retry[row],
                marginal_ms=marginal,
                sentence=f"{said}; {DEMAND_HELD}" if asked.demand_held else said,
                failover=lost,
            )

    def _listed(self, rows: Ints) -> Listed:
        """List the engines of rows: those with a weight, those that had one or were answered, and those pinned."""
        # An engine that lost all its weight stays listed once, with the reason why; one that was answered, or is
        # pinned to nothing, for it.
        layout, size = self._layout, max(len(self._layout.engines), 1)
        chosen = np.zeros(len(layout.rows), dtype=np.bool_)
        chosen[rows] = True
        pinned = [row * size + engine for row in sorted(self._targets.pinned) for engine in self._targets.pinned[row]]
        weights, warm, answer, before = (
            _of_rows(entries, chosen, size) for entries in (self.weights, layout.warm, self._answered(), layout.before)
        )
        of_pins: Ints = np.array(pinned, dtype=np.int64)
        keys = np.unique(np.concatenate((weights[0], warm[0], answer[0], of_pins[chosen[of_pins // size]])))
        start = np.searchsorted(keys // size, rows)
        return Listed(
            np.append(start, len(keys)),
            keys // size,
            keys % size,
            *(_looked_up(keys, entries) for entries in (weights, answer, before, warm)),
        )

    def _answered(self) -> Entries:
        """Give the policy's own answer, where the plan's weights stand for their own sake; else the weights."""
        answer, weights = self._plan.answer, self.weights
        if answer is None:
            return weights
        made = weigh(self._layout, answer)
        own, same = ~answer.kept[made.row], answer.kept[weights.row]
        row = np.concatenate((made.row[own], weights.row[same]))
        order = np.argsort(row, kind="stable")
        engine = np.concatenate((made.engine[own], weights.engine[same]))[order]
        return Entries(row[order], engine, np.concatenate((made.ppm[own], weights.ppm[same]))[order])


def _of_rows(entries: Entries, chosen: Bools, size: int) -> tuple[Ints, Ints]:
    """Give (row x size + engine, ppm) of the entries of the rows that are chosen, but of engines that are out."""
    some = chosen[entries.row] & (entries.engine >= 0)
    return entries.row[some] * size + entries.engine[some], entries.ppm[some]


def _looked_up(keys: Ints, entries: tuple[Ints, Ints]) -> Ints:
    """Give the ppm of each key; 0 where it has no entry."""
    found = np.zeros(len(keys), dtype=np.int64)
    if not len(keys):
        return found
    at = np.minimum(np.searchsorted(keys, entries[0]), len(keys) - 1)
    there = keys[at] == entries[0]
    found[at[there]] = entries[1][there]
    return found


def _shed_ratios(layout: Layout, plan: Plan, start: Ints) -> Floats:
    """Give the share of each row that is refused, (R,); 1 where no engine has a weight."""
    demand = layout.demand
    ratio = np.divide(plan.shed, demand, out=np.zeros_like(demand), where=demand > 0.0)
    # The last bits of a division are neither a shed request nor a served one.
    ratio = np.where(ratio < LAST_BITS, 0.0, np.where(ratio > 1.0 - LAST_BITS, 1.0, ratio))
    return np.where(np.diff(start) > 0, ratio, 1.0)
