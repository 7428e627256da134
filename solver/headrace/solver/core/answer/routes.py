"""A plan's weights -> the records of its routes. A route that says the same as before keeps its old record untouched.

"The same" is what a gateway acts on: engines, weights, addresses, exclusions, fallback, tier, shed and retry ratios,
within the bounds below, and demand within 5 %. Predictions and sentences alone do not make a new record: they would
rewrite every route at every tick.
"""

from operator import attrgetter

import numpy as np

from headrace.schemas.weights import Excluded, Reason, RouteWeights, Target
from headrace.solver.core.answer.apportion import weigh
from headrace.solver.core.answer.failover import Failover, Failovers
from headrace.solver.core.answer.fallback import Fallbacks
from headrace.solver.core.answer.reasons import DEMAND_HELD, route_sentence
from headrace.solver.core.answer.refusals import Refusals
from headrace.solver.core.answer.retry import retry_ratios
from headrace.solver.core.answer.targets import TargetWriter
from headrace.solver.core.program.layout import Entries, Floats, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.settings import SolverSettings

SHED_STEP = 0.001
"""A shed ratio is written again when it moves by more than this, or from or to exactly 0 or 1."""
RETRY_STEP = 0.005
DEMAND_STEP = 0.05
"""Relative: how far the demand in a record may be off before the route is written again."""
_ID, _PPM, _ADDRESS = attrgetter("engine_id"), attrgetter("weight_ppm"), attrgetter("address")


class RouteWriter:
    """Writes the routes of one plan. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan, settings: SolverSettings) -> None:
        self._layout = layout
        self._plan = plan
        self._retry: list[float] = retry_ratios(layout, plan, settings).tolist()
        self._refusals = Refusals(layout)
        self._fallbacks = Fallbacks(layout)
        self._failovers = Failovers(layout, plan, self._fallbacks.near, settings.failover_spare)
        self._targets = TargetWriter(layout, plan)
        self.weights: Entries = weigh(layout, plan)
        self._start: list[int] = np.searchsorted(self.weights.row, np.arange(len(layout.rows) + 1)).tolist()
        self._engine: list[int] = self.weights.engine.tolist()
        self._ppm: list[int] = self.weights.ppm.tolist()
        ids, addresses = [e.engine_id for e in layout.engines], [e.address for e in layout.engines]
        self._ids, self._addresses = [ids[e] for e in self._engine], [addresses[e] for e in self._engine]
        self._shed: list[float] = _shed_ratios(layout, plan, self._start).tolist()
        self._warm_start: list[int] = np.searchsorted(layout.warm.row, np.arange(len(layout.rows) + 1)).tolist()
        self._answer: tuple[Entries, list[int]] | None = None

    def write(self, row: int, epoch: int, version: int, *, afresh: bool) -> RouteWeights:
        """Give a row's record: the previous one itself where it says the same and need not be written `afresh`."""
        excluded = self._refusals.of(row)
        old = self._layout.previous.get(self._layout.row_key[row])
        if old is not None and not afresh and self._says_the_same(old, row, excluded):
            return old
        first, end = self._start[row], self._start[row + 1]
        shares = dict(zip(self._engine[first:end], self._ppm[first:end], strict=True))
        asked, shed = self._layout.rows[row], self._shed[row]
        prices = self._plan.prices
        marginal = float(prices.row[row]) * asked.work if prices is not None and shares else None
        named = list(zip(self._ids[first:end], self._ppm[first:end], strict=True))
        said = route_sentence(asked.demand_rps, named, shed, marginal)
        failover = self._failovers.of(row, shares)
        return RouteWeights(
            cluster=asked.route.cluster,
            model=asked.route.model,
            request_class=asked.route.request_class,
            tier=asked.tier,
            epoch=epoch,
            version=version,
            demand_rps=asked.demand_rps,
            targets=self._written(row, shares, old, failover),
            excluded=excluded,
            fallback=self._fallbacks.of(row),
            shed_ratio=shed,
            retry_ratio=self._retry[row],
            marginal_ms=marginal,
            sentence=f"{said}; {DEMAND_HELD}" if asked.demand_held else said,
            failover=failover.targets,
        )

    def _answered(self, row: int, shares: dict[int, int]) -> dict[int, int]:
        """Give the policy's own answer by engine, where its weights stand for their own sake; else the weights."""
        answer = self._plan.answer
        if answer is None or answer.kept[row]:
            return shares
        if self._answer is None:
            made = weigh(self._layout, answer)
            self._answer = made, np.searchsorted(made.row, np.arange(len(self._layout.rows) + 1)).tolist()
        entries, start = self._answer
        own = slice(start[row], start[row + 1])
        return dict(zip(entries.engine[own].tolist(), entries.ppm[own].tolist(), strict=True))

    def _written(
        self, row: int, shares: dict[int, int], old: RouteWeights | None, failover: Failover
    ) -> tuple[Target, ...]:
        before = {} if old is None else {t.engine_id: t.weight_ppm for t in old.targets if t.weight_ppm > 0}
        answer = self._answered(row, shares)
        # An engine that lost all its weight stays listed once, with the reason why; one that was answered, or is
        # pinned to nothing, for it.
        warm: list[int] = self._layout.warm.engine[self._warm_start[row] : self._warm_start[row + 1]].tolist()
        engines = self._layout.engines
        listed = dict.fromkeys((*shares, *warm, *answer, *self._targets.pinned.get(row, ())))
        weights = {e: (shares.get(e, 0), answer.get(e, 0), before.get(engines[e].engine_id, 0)) for e in listed}
        kept = {e: failover.kept(e, self._failovers.load[e]) for e in listed}
        return self._targets.write(row, weights, kept)

    def _says_the_same(self, old: RouteWeights, row: int, excluded: tuple[Excluded, ...]) -> bool:
        first, end = self._start[row], self._start[row + 1]
        # In C and without a new object each, since it is asked of every route in every tick.
        live = old.targets if all(map(_PPM, old.targets)) else [t for t in old.targets if t.weight_ppm > 0]
        if (
            list(map(_PPM, live)) != self._ppm[first:end]
            or list(map(_ID, live)) != self._ids[first:end]
            or list(map(_ADDRESS, live)) != self._addresses[first:end]
        ):
            return False
        asked, shed = self._layout.rows[row], self._shed[row]
        if old.tier != asked.tier or abs(self._retry[row] - old.retry_ratio) > RETRY_STEP:
            return False
        if abs(asked.demand_rps - old.demand_rps) > DEMAND_STEP * max(asked.demand_rps, old.demand_rps):
            return False
        if abs(shed - old.shed_ratio) > SHED_STEP or (shed in (0.0, 1.0)) != (old.shed_ratio in (0.0, 1.0)):
            return False
        if old.sentence.endswith(DEMAND_HELD) != asked.demand_held:
            return False
        pinned = [self._layout.engines[e].engine_id for e in sorted(self._targets.pinned.get(row, ()))]
        if pinned != [t.engine_id for t in old.targets if t.reason is Reason.PINNED]:
            return False
        if (old.excluded or excluded) and [(x.engine_id, x.reason) for x in old.excluded] != [
            (x.engine_id, x.reason) for x in excluded
        ]:
            return False
        return self._fallbacks.is_still(row, old.fallback)


def _shed_ratios(layout: Layout, plan: Plan, start: list[int]) -> Floats:
    """Give the share of each row that is refused, (R,); 1 where no engine has a weight."""
    demand = layout.demand
    ratio = np.divide(plan.shed, demand, out=np.zeros_like(demand), where=demand > 0.0)
    ratio = np.where(ratio < 1e-9, 0.0, np.minimum(ratio, 1.0))
    return np.where(np.diff(start) > 0, ratio, 1.0)
