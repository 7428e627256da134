"""A plan's weights -> the records of its routes. A route that says the same as before keeps its old record untouched.

"The same" is what a gateway acts on: engines, weights, addresses, exclusions, fallback, tier, shed and retry ratios,
within the bounds below, and demand within 5 %. Predictions and sentences alone do not make a new record: they would
rewrite every route at every tick.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import Excluded, Reason, RouteWeights
from headrace.solver.core.answer.apportion import weigh
from headrace.solver.core.answer.failover import Failovers
from headrace.solver.core.answer.fallback import Fallbacks
from headrace.solver.core.answer.reasons import DEMAND_HELD, route_sentence
from headrace.solver.core.answer.refusals import Refusals
from headrace.solver.core.answer.retry import retry_ratios
from headrace.solver.core.answer.targets import Listed, TargetWriter
from headrace.solver.core.program.layout import Entries, Floats, Ints, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.settings import SolverSettings

SHED_STEP = 0.001
"""A shed ratio is written again when it moves by more than this, or from or to exactly 0 or 1."""
RETRY_STEP = 0.005
DEMAND_STEP = 0.05
"""Relative: how far the demand in a record may be off before the route is written again."""
TOGETHER = 4096
"""Rows that are reckoned at once: what they take in the meantime is bounded."""
_PPM, _ADDRESS = attrgetter("weight_ppm"), attrgetter("address")
Bools = npt.NDArray[np.bool_]


class RouteWriter:
    """Writes the routes of one plan. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan, settings: SolverSettings) -> None:
        self._layout = layout
        self._plan = plan
        self._retry: list[float] = retry_ratios(layout, plan, settings).tolist()
        self._excluded = Refusals(layout).of_all()
        self._fallbacks = Fallbacks(layout)
        self._failovers = Failovers(layout, plan, self._fallbacks.shared, settings.failover_spare)
        self._targets = TargetWriter(layout, plan)
        self.weights: Entries = weigh(layout, plan)
        start = np.searchsorted(self.weights.row, np.arange(len(layout.rows) + 1))
        self._start: list[int] = start.tolist()
        self._shed: list[float] = _shed_ratios(layout, plan, start).tolist()
        self._ppm: list[int] = self.weights.ppm.tolist()
        engines: list[int] = self.weights.engine.tolist()
        ids, addresses = [e.engine_id for e in layout.engines], [e.address for e in layout.engines]
        self._ids, self._addresses = [ids[e] for e in engines], [addresses[e] for e in engines]

    def write(self, epoch: int, version: int, *, afresh: bool) -> tuple[RouteWeights, ...]:
        """Give each row's record: the previous one itself where it says the same and need not be written `afresh`."""
        old = [self._layout.previous.get(key) for key in self._layout.row_key]
        rows = np.arange(len(old)) if afresh else self._changed(old)
        routes: dict[int, RouteWeights] = {}
        for first in range(0, len(rows), TOGETHER):
            some = rows[first : first + TOGETHER]
            routes |= zip(some.tolist(), self._written(some, epoch, version), strict=True)
        # A row without an old record is always written.
        return tuple(routes[row] if row in routes or kept is None else kept for row, kept in enumerate(old))

    def _written(self, rows: Ints, epoch: int, version: int) -> Iterator[RouteWeights]:
        listed, near = self._listed(rows), self._fallbacks.near(rows)
        failover = self._failovers.of(rows, near, self.weights)
        place = np.repeat(np.arange(len(rows)), np.diff(listed.start))
        targets = self._targets.write(listed, failover.kept(place, listed.engine))
        prices: list[float] | None = None if self._plan.prices is None else self._plan.prices.row.tolist()
        numbers: list[int] = rows.tolist()
        parts = zip(numbers, targets, self._fallbacks.of(near), failover.targets, strict=True)
        for row, of_row, fallback, lost in parts:
            own = slice(self._start[row], self._start[row + 1])
            asked, shed = self._layout.rows[row], self._shed[row]
            marginal = prices[row] * asked.work if prices is not None and own.stop > own.start else None
            named = list(zip(self._ids[own], self._ppm[own], strict=True))
            said = route_sentence(asked.demand_rps, named, shed, marginal)
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
            *(_looked_up(keys, entries) for entries in (weights, answer, before)),
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

    def _changed(self, old: Sequence[RouteWeights | None]) -> Ints:
        """Give the rows whose old record does not say the same any more, or that have none."""
        same = self._same_weights()
        still = [
            row
            for row, route in enumerate(old)
            if same[row] and route is not None and self._says_the_same(route, row, self._excluded[row])
        ]
        changed: Bools = np.ones(len(old), dtype=np.bool_)
        for first in range(0, len(still), TOGETHER):
            some = still[first : first + TOGETHER]
            rows: Ints = np.array(some, dtype=np.int64)
            fallbacks = [() if (route := old[row]) is None else route.fallback for row in some]
            changed[rows] = ~np.array(self._fallbacks.are_still(self._fallbacks.near(rows), fallbacks), dtype=np.bool_)
        return np.flatnonzero(changed)

    def _same_weights(self) -> list[bool]:
        """Say of each row whether its weights are the old ones, engine by engine, (R,)."""
        rows, new, old = len(self._layout.rows), self.weights, self._layout.before
        alike = np.bincount(new.row, minlength=rows) == np.bincount(old.row, minlength=rows)
        ours, theirs = alike[new.row], alike[old.row]
        off = (new.engine[ours] != old.engine[theirs]) | (new.ppm[ours] != old.ppm[theirs])
        same: list[bool] = (alike & (np.bincount(new.row[ours], weights=off, minlength=rows) == 0.0)).tolist()
        return same

    def _says_the_same(self, old: RouteWeights, row: int, excluded: tuple[Excluded, ...]) -> bool:
        """Say whether all but the weights and the fallback is as it was."""
        asked, shed, demand = self._layout.rows[row], self._shed[row], old.demand_rps
        if old.tier != asked.tier or abs(self._retry[row] - old.retry_ratio) > RETRY_STEP:
            return False
        if abs(asked.demand_rps - demand) > DEMAND_STEP * max(asked.demand_rps, demand):
            return False
        if abs(shed - old.shed_ratio) > SHED_STEP or (shed in (0.0, 1.0)) != (old.shed_ratio in (0.0, 1.0)):
            return False
        if old.sentence.endswith(DEMAND_HELD) != asked.demand_held:
            return False
        # In C and without a new object each, since it is asked of every route in every tick.
        live = old.targets if all(map(_PPM, old.targets)) else [t for t in old.targets if t.weight_ppm > 0]
        if list(map(_ADDRESS, live)) != self._addresses[self._start[row] : self._start[row + 1]]:
            return False
        pinned = [self._layout.engines[e].engine_id for e in sorted(self._targets.pinned.get(row, ()))]
        if pinned != [t.engine_id for t in old.targets if t.reason is Reason.PINNED]:
            return False
        return not (old.excluded or excluded) or [(x.engine_id, x.reason) for x in old.excluded] == [
            (x.engine_id, x.reason) for x in excluded
        ]


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
    ratio = np.where(ratio < 1e-9, 0.0, np.minimum(ratio, 1.0))
    return np.where(np.diff(start) > 0, ratio, 1.0)
