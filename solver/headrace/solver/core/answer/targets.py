"""The engines of routes -> their targets: each with its weight, what is predicted of it, and why.

All targets of a tick are reckoned together, in columns; only sentences and records are made one by one. A first
snapshot of a large fleet has tens of thousands of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headrace.schemas.weights import Target
from headrace.solver.core.answer.pinned import pinned_engines, ways_at_most
from headrace.solver.core.answer.reasons import Standings, nearest_and_cheapest, reasons_of, sentence_of
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import predict

WORTH_A_WORD_MS = 0.5
"""What is printed as 1 ms or more."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The engines of N routes, T in all: `start` (N + 1,) says where each route's begin, sorted by engine in it.

    Of each engine in its route, (T,): the route's row, its own index, and in ppm its weight, the policy's own answer,
    and the weight before; and what may stay there, which an engine that took over for one that is out has too.
    """

    start: Ints
    row: Ints
    engine: Ints
    weight: Ints
    answer: Ints
    before: Ints
    warm: Ints


class TargetWriter:
    """Writes the targets of one plan's routes. Lives for one tick."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout = layout
        self._plan = plan
        self._told = predict(layout, plan)
        self._nearest, self._cheapest = nearest_and_cheapest(layout, plan)
        # Numbers of groups are made once, and are the same objects in all their engines' targets.
        lists = (self._told.ttft_s.tolist(), self._told.tbot_s.tolist(), self._told.utilisation.tolist())
        self._of_groups: tuple[list[float], list[float], list[float]] = lists
        self.pinned = pinned_engines(layout)
        self._at_most = ways_at_most(layout, plan)
        self.ttft_s = self._told.ttft_s

    def write(
        self, listed: Listed, kept: Sequence[float | None], headroom: Sequence[float | None]
    ) -> list[tuple[Target, ...]]:
        """Give the targets of routes, sorted by engine.

        Args:
            listed: the T engines.
            kept: (T,) what the failovers have room for of their sessions.
            headroom: (T,) as `headroom` gives it.
        """
        layout, engines, s = self._layout, self._layout.engines, self._standings(listed)
        groups: list[int] = layout.engine_group[listed.engine].tolist()
        ttft_s, tbot_s, used = ([values[h] for h in groups] for values in self._of_groups)
        network_s: list[float] = (s.network_ms / MS).tolist()
        price = _nones(listed) if s.price_ms is None else s.price_ms.tolist()
        saved = _nones(listed) if s.marginal_ms is None else (s.marginal_ms - s.cheapest_ms).tolist()
        marginal = _nones(listed) if s.marginal_ms is None else s.marginal_ms.tolist()
        numbers: list[int] = listed.engine.tolist()
        columns = (
            *(listed.weight.tolist(), listed.answer.tolist(), listed.before.tolist()),
            *(network_s, ttft_s, tbot_s, used, price),
            *(
                s.network_ms.tolist(),
                s.engine_ms.tolist(),
                marginal,
                saved,
                reasons_of(s),
                self._pins(listed, s),
                kept,
                headroom,
            ),
        )
        made: list[Target] = []
        of_targets = [engines[e] for e in numbers]
        for (
            engine,
            ppm,
            own,
            was,
            away,
            ttft,
            tbot,
            load,
            cost,
            ms,
            inside,
            total,
            more,
            reason,
            pin,
            keeps,
            room,
        ) in zip(of_targets, *columns, strict=True):
            sentence = sentence_of(reason, (ms, inside, load), total, more, pin)
            if engine.latency_sentence:
                sentence = f"{sentence}; {engine.latency_sentence}"
            made.append(
                Target(
                    *(engine.engine_id, engine.address, ppm, own, was, away, ttft, tbot, load, cost),
                    *(reason, sentence, keeps, room),
                )
            )
        return [tuple(made[first:end]) for first, end in pairwise(listed.start.tolist())]

    def _standings(self, listed: Listed) -> Standings:
        layout, plan = self._layout, self._plan
        told, group = self._told, layout.engine_group[listed.engine]
        # What is of a unit of work becomes what is of a request.
        work = layout.row_work[listed.row]
        network = self._network(listed) * work
        price = None if plan.prices is None else plan.prices.pool[layout.engine_pool[listed.engine]] * work
        return Standings(
            weight_ppm=listed.weight,
            warm_ppm=listed.warm,
            demand_rps=layout.demand[listed.row],
            network_ms=network,
            engine_ms=told.latency_ms[group] * work,
            load=told.utilisation[group],
            price_ms=price,
            marginal_ms=None if price is None else network + price,
            nearest_ms=self._nearest[listed.row],
            cheapest_ms=self._cheapest[listed.row],
            pinned=self._pinned(listed),
        )

    def _network(self, listed: Listed) -> Floats:
        layout, size = self._layout, len(self._layout.pools)
        wanted = listed.row * size + layout.engine_pool[listed.engine]
        return layout.pair_network[np.searchsorted(layout.pair_row * size + layout.pair_pool, wanted)]

    def _pins(self, listed: Listed, s: Standings) -> Sequence[str]:
        """Say who holds each target's share to what, or that of a cheaper engine, which is why it has any."""
        if s.marginal_ms is None or not self._at_most:
            return s.pinned
        said = list(s.pinned)
        columns = zip(listed.row.tolist(), listed.weight.tolist(), s.marginal_ms.tolist(), strict=True)
        for i, (row, ppm, total) in enumerate(columns):
            ms, engine_id, words = self._at_most.get(row, (total, "", ""))
            if ppm and not said[i] and total - ms >= WORTH_A_WORD_MS:
                said[i] = f"{engine_id} would cost {total - ms:.0f} ms less, and {words}"
        return said

    def _pinned(self, listed: Listed) -> list[str]:
        if not self.pinned:
            return [""] * len(listed.row)
        pairs = zip(listed.row.tolist(), listed.engine.tolist(), strict=True)
        return [self.pinned.get(row, {}).get(engine, "") for row, engine in pairs]


def _nones(listed: Listed) -> list[float | None]:
    return [None] * len(listed.engine)
