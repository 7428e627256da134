"""The engines of a route -> its targets: each with its weight, what is predicted of it, and why.

What is the same for every route (predictions of groups, prices of pools) is made into plain lists once: a snapshot of a
large fleet has tens of thousands of targets, and reading one number of an array costs more than the number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headrace.schemas.weights import Target
from headrace.solver.core.answer.pinned import pinned_engines
from headrace.solver.core.answer.reasons import Standing, nearest_and_cheapest, reason_of, sentence_of
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import predict

Weights = tuple[int, int, int]
"""Of one engine in one route, ppm: its weight, the policy's own answer, and the weight before."""


class TargetWriter:
    """Writes the targets of one plan's routes. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        told = predict(layout, plan)
        nearest, cheapest = nearest_and_cheapest(layout, plan)
        self._layout = layout
        self._engines = layout.engines
        self._demand: list[float] = layout.demand.tolist()
        self._work: list[float] = layout.row_work.tolist()
        self._nearest: list[float] = nearest.tolist()
        self._cheapest: list[float] | None = None if plan.prices is None else cheapest.tolist()
        self._price: list[float] | None = None if plan.prices is None else plan.prices.pool.tolist()
        self._group: list[int] = layout.engine_group.tolist()
        self._pool: list[int] = layout.engine_pool.tolist()
        self._load: list[float] = told.utilisation.tolist()
        self._ttft: list[float] = told.ttft_s.tolist()
        self._tbot: list[float] = told.tbot_s.tolist()
        self._latency: list[float] = told.latency_ms.tolist()
        self.pinned = pinned_engines(layout)

    def write(self, row: int, weights: Mapping[int, Weights], kept: Mapping[int, float | None]) -> tuple[Target, ...]:
        """Give a row's targets, sorted by engine, for the weights of engines that it may use.

        `kept` is what its failover has room for of each one's sessions.
        """
        listed = sorted(weights)
        network = self._networks(row, listed)
        pinned = self.pinned.get(row, {})
        return tuple(
            [
                replace(self._one(row, e, ms, weights[e], pinned.get(e, "")), failover_kept=kept[e])
                for e, ms in zip(listed, network, strict=True)
            ]
        )

    def _networks(self, row: int, engines: Sequence[int]) -> list[float]:
        pairs = self._layout.pairs_of(row)
        pools = self._layout.engine_pool[engines]
        at = pairs.start + np.searchsorted(self._layout.pair_pool[pairs], pools)
        network: list[float] = (self._layout.pair_network[at] * self._work[row]).tolist()
        return network

    def _one(self, row: int, e: int, network_ms: float, weights: Weights, pinned: str) -> Target:
        engine, group = self._engines[e], self._group[e]
        work = self._work[row]
        price = None if self._price is None else self._price[self._pool[e]] * work
        s = Standing(
            weight_ppm=weights[0],
            network_ms=network_ms,
            engine_ms=self._latency[group] * work,
            load=self._load[group],
            marginal_ms=None if price is None else network_ms + price,
            nearest_ms=self._nearest[row],
            cheapest_ms=None if self._cheapest is None else self._cheapest[row],
            pinned=pinned,
        )
        reason = reason_of(s, self._demand[row])
        sentence = sentence_of(s, reason)
        return Target(
            engine_id=engine.engine_id,
            address=engine.address,
            weight_ppm=weights[0],
            solver_ppm=weights[1],
            previous_ppm=weights[2],
            network_s=network_ms / MS,
            ttft_s=self._ttft[group],
            tbot_s=self._tbot[group],
            utilisation=s.load,
            engine_price_ms=price,
            reason=reason,
            sentence=f"{sentence}; {engine.latency_sentence}" if engine.latency_sentence else sentence,
        )
