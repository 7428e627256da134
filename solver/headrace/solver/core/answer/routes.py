"""A plan's weights -> the records of its routes. A route that says the same as before keeps its old record untouched.

"The same" is what a gateway acts on: engines, weights, addresses, exclusions, fallback, tier, shed and retry ratios,
within the bounds below, and demand within 5 %. Predictions and sentences alone do not make a new record: they would
rewrite every route at every tick.
"""

from dataclasses import replace

import numpy as np

from headrace.schemas.weights import Excluded, Reason, RouteWeights, Target
from headrace.solver.core.answer.apportion import weigh
from headrace.solver.core.answer.fallback import Fallbacks
from headrace.solver.core.answer.pinned import pinned_engines
from headrace.solver.core.answer.reasons import (
    DEMAND_HELD,
    nearest_and_cheapest,
    reason_of,
    route_sentence,
    sentence_of,
    standing,
)
from headrace.solver.core.answer.refusals import Refusals
from headrace.solver.core.answer.retry import retry_ratios
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.layout import Entries, Ints, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import predict
from headrace.solver.settings import SolverSettings

SHED_STEP = 0.001
"""A shed ratio is written again when it moves by more than this, or from or to exactly 0 or 1."""
RETRY_STEP = 0.005
DEMAND_STEP = 0.05
"""Relative: how far the demand in a record may be off before the route is written again."""


class RouteWriter:
    """Writes the routes of one plan. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan, settings: SolverSettings) -> None:
        self._layout = layout
        self._plan = plan
        self._told = predict(layout, plan)
        self._extremes = nearest_and_cheapest(layout, plan)
        self._retry = retry_ratios(layout, plan, settings)
        self._refusals = Refusals(layout)
        self._fallbacks = Fallbacks(layout)
        self._pinned = pinned_engines(layout)
        self.weights: Entries = weigh(layout, plan)
        self._start = np.searchsorted(self.weights.row, np.arange(len(layout.rows) + 1))
        self._answer: Entries | None = None

    def write(self, row: int, epoch: int, version: int, *, afresh: bool) -> RouteWeights:
        """Give a row's record: the previous one itself where it says the same and need not be written `afresh`."""
        entries = slice(int(self._start[row]), int(self._start[row + 1]))
        shares: dict[int, int] = dict(
            zip(self.weights.engine[entries].tolist(), self.weights.ppm[entries].tolist(), strict=True)
        )
        excluded = self._refusals.of(row)
        old = self._layout.previous.get(self._layout.row_key[row])
        shed = self._shed_ratio(row, bool(shares))
        if old is not None and not afresh and self._says_the_same(old, row, shares, shed, excluded):
            return old
        asked = self._layout.rows[row]
        prices = self._plan.prices
        marginal = float(prices.row[row]) if prices is not None and shares else None
        named = [(self._layout.engines[e].engine_id, ppm) for e, ppm in shares.items()]
        said = route_sentence(asked.demand_rps, named, shed, marginal)
        return RouteWeights(
            cluster=asked.route.cluster,
            model=asked.route.model,
            request_class=asked.route.request_class,
            tier=asked.tier,
            epoch=epoch,
            version=version,
            demand_rps=asked.demand_rps,
            targets=self._targets(row, shares, self._answered(row, shares), old),
            excluded=excluded,
            fallback=self._fallbacks.of(row),
            shed_ratio=shed,
            retry_ratio=float(self._retry[row]),
            marginal_ms=marginal,
            sentence="; ".join(filter(None, (said, DEMAND_HELD if asked.demand_held else ""))),
        )

    def _shed_ratio(self, row: int, served: bool) -> float:  # noqa: FBT001 - private
        demand = float(self._layout.demand[row])
        if not served:
            return 1.0
        ratio = float(self._plan.shed[row]) / demand if demand > 0.0 else 0.0
        return 0.0 if ratio < 1e-9 else min(ratio, 1.0)

    def _answered(self, row: int, shares: dict[int, int]) -> dict[int, int]:
        """Give the policy's own answer by engine, where its weights stand for their own sake; else the weights."""
        answer = self._plan.answer
        if answer is None or answer.kept[row]:
            return shares
        if self._answer is None:
            self._answer = weigh(self._layout, answer)
        first, end = (int(i) for i in np.searchsorted(self._answer.row, (row, row + 1)))
        return dict(zip(self._answer.engine[first:end].tolist(), self._answer.ppm[first:end].tolist(), strict=True))

    def _targets(
        self, row: int, shares: dict[int, int], answer: dict[int, int], old: RouteWeights | None
    ) -> tuple[Target, ...]:
        before = {} if old is None else {t.engine_id: t.weight_ppm for t in old.targets if t.weight_ppm > 0}
        listed = dict(shares)
        # An engine that lost all its weight stays listed once, with the reason why; one that was answered, or is
        # pinned to nothing, for it.
        for e in (*self._warm_engines(row), *answer, *self._pinned.get(row, ())):
            listed.setdefault(e, 0)
        first = int(self._layout.row_start[row])
        pools: Ints = self._layout.pair_pool[self._layout.pairs_of(row)]
        made: list[Target] = []
        for e in sorted(listed):
            pair = first + int(np.searchsorted(pools, int(self._layout.engine_pool[e])))
            ppm = listed[e], answer.get(e, 0), before.get(self._layout.engines[e].engine_id, 0)
            made.append(self._target(row, pair, e, ppm))
        return tuple(made)

    def _warm_engines(self, row: int) -> list[int]:
        warm = self._layout.warm
        first, end = (int(i) for i in np.searchsorted(warm.row, (row, row + 1)))
        engines: list[int] = warm.engine[first:end].tolist()
        return engines

    def _target(self, row: int, pair: int, e: int, weights: tuple[int, int, int]) -> Target:
        ppm, solver_ppm, previous_ppm = weights
        engine, group = self._layout.engines[e], int(self._layout.engine_group[e])
        s = standing(self._layout, self._plan, self._told, self._extremes, (pair, e), ppm)
        if (words := self._pinned.get(row, {}).get(e)) is not None:
            s = replace(s, pinned=words)
        reason = reason_of(s, float(self._layout.demand[row]))
        prices = self._plan.prices
        return Target(
            engine_id=engine.engine_id,
            address=engine.address,
            weight_ppm=ppm,
            solver_ppm=solver_ppm,
            previous_ppm=previous_ppm,
            network_s=s.network_ms / MS,
            ttft_s=float(self._told.ttft_s[group]),
            tbot_s=float(self._told.tbot_s[group]),
            utilisation=s.load,
            engine_price_ms=float(prices.pool[self._layout.engine_pool[e]]) if prices is not None else None,
            reason=reason,
            sentence="; ".join(filter(None, (sentence_of(s, reason), engine.latency_sentence))),
        )

    def _says_the_same(
        self,
        old: RouteWeights,
        row: int,
        shares: dict[int, int],
        shed: float,
        excluded: tuple[Excluded, ...],
    ) -> bool:
        asked, engines = self._layout.rows[row], self._layout.engines
        weights = [(t.engine_id, t.weight_ppm, t.address) for t in old.targets if t.weight_ppm > 0]
        if weights != [(engines[e].engine_id, ppm, engines[e].address) for e, ppm in shares.items()]:
            return False
        if old.tier != asked.tier or abs(float(self._retry[row]) - old.retry_ratio) > RETRY_STEP:
            return False
        if abs(asked.demand_rps - old.demand_rps) > DEMAND_STEP * max(asked.demand_rps, old.demand_rps):
            return False
        if abs(shed - old.shed_ratio) > SHED_STEP or (shed in (0.0, 1.0)) != (old.shed_ratio in (0.0, 1.0)):
            return False
        if old.sentence.endswith(DEMAND_HELD) != asked.demand_held:
            return False
        pinned = [engines[e].engine_id for e in sorted(self._pinned.get(row, ()))]
        if pinned != [t.engine_id for t in old.targets if t.reason is Reason.PINNED]:
            return False
        if (old.excluded or excluded) and [(x.engine_id, x.reason) for x in old.excluded] != [
            (x.engine_id, x.reason) for x in excluded
        ]:
            return False
        return self._fallbacks.is_still(row, old.fallback)
