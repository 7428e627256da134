"""Requests under way at each engine of a route, and which engines have more than their share of them.

    share                  = weight of e x (under way at all + 1)
    crowded where  under way at e + 1  >  max(least, min(ceil(factor x share), floor(most x share)))

Rounding up leaves the smallest engines room, and `most` bounds that: 1.25 times 3.3 requests would be 5, half as much
again as the share. A session whose engine is crowded moves on to its next slot: bounded-load consistent hashing. New
conversations move at a lower factor than established ones: they have no cache to lose. Counts are of this data plane
alone, so many replicas with little traffic each see little; `least` keeps few requests from being called a crowd.

Counting is exact on any number of threads (the ends of a deque are atomic). Which engines are crowded is looked at when
a request begins or ends there, so it may be one request late; a count is never below zero, whoever ends twice.

Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", SODA 2018.
"""

import math
from collections import deque
from collections.abc import Mapping

from headrace.dataplane.settings import GuardSettings


class InFlight:
    """The requests under way of one route.

    Attributes:
        crowded: engines that let established conversations go.
        crowded_for_new: those that let new ones go; more of them.
    """

    __slots__ = ("_all", "_at", "_ppm", "_settings", "_total_ppm", "crowded", "crowded_for_new")

    def __init__(self, settings: GuardSettings) -> None:
        self._settings = settings
        self._ppm: Mapping[str, int] = {}
        self._total_ppm = 1
        self._all: deque[None] = deque()
        self._at: dict[str, deque[None]] = {}
        self.crowded: frozenset[str] = frozenset()
        self.crowded_for_new: frozenset[str] = frozenset()

    def weigh(self, ppm: Mapping[str, int]) -> None:
        """Judge by these weights, of which only the ratios matter; who has neither one nor a request is forgotten."""
        self._ppm, self._total_ppm = ppm, max(1, sum(ppm.values()))
        for engine, under_way in list(self._at.items()):
            if engine not in ppm and not under_way:
                self._at.pop(engine)
        self._look(self.crowded_for_new)

    def count(self, engine_id: str) -> int:
        """Give the requests under way at an engine."""
        under_way = self._at.get(engine_id)
        return 0 if under_way is None else len(under_way)

    def begin(self, engine_id: str) -> None:
        """Note a request sent."""
        self._all.append(None)
        self._at.setdefault(engine_id, deque()).append(None)
        self._look_at(engine_id)

    def end(self, engine_id: str) -> bool:
        """Note that one has ended; says whether it had begun."""
        try:
            self._at[engine_id].pop()
            self._all.pop()
        except (KeyError, IndexError):
            return False
        self._look_at(engine_id)
        return True

    def _look_at(self, engine_id: str) -> None:
        if self.crowded_for_new or self._above(engine_id, self._settings.in_flight_new):
            self._look({engine_id, *self.crowded_for_new})

    def _look(self, engines: set[str] | frozenset[str]) -> None:
        for_new = frozenset(e for e in engines if self._above(e, self._settings.in_flight_new))
        crowded = frozenset(e for e in for_new if self._above(e, self._settings.in_flight_established))
        # Equal sets stay the same objects, by which the router knows them.
        if for_new != self.crowded_for_new:
            self.crowded_for_new = for_new
        if crowded != self.crowded:
            self.crowded = crowded

    def _above(self, engine_id: str, factor: float) -> bool:
        here = self.count(engine_id) + 1
        if here <= self._settings.in_flight_min or engine_id not in self._ppm:
            return False
        share = self._ppm[engine_id] / self._total_ppm * (len(self._all) + 1)
        return here > min(math.ceil(factor * share), math.floor(self._settings.in_flight_most * share))
