"""One route made ready for requests: its slot table, and every answer it may give, made before any request asks.

Built off the request thread, from one `RouteWeights`, and never changed. A decision is picked, not made: the usual
request allocates nothing. Memory is two bytes a slot (four above 65,536 engines).
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import slot_table
from headrace.schemas.weights import RouteWeights

SHED_BITS: Final = 32
"""A session is shed where the highest 32 bits of its hash are below shed_ratio x 2^32: the set grows with the ratio."""
_ALL: Final = 1 << SHED_BITS


@dataclass(frozen=True, slots=True)
class RouteTable:
    """What `route()` looks at for one route.

    Attributes:
        weights: the record this was built from.
        size: number of slots; 0 where no engine has a weight.
        slots: for each slot, the index into `by_slot`.
        by_slot: the decision for each engine with a weight, sorted by engine.
        by_hint: the same by engine, for callers that ask for one.
        weighted: the same engines, for the scan.
        fallback: the snapshot's static fallback, without the engines that it excludes.
        shed_below: of the session's highest 32 bits; 2^32 sheds all.
    """

    weights: RouteWeights
    size: int
    slots: "array[int]"
    by_slot: tuple[Decision, ...]
    by_hint: Mapping[str, Decision]
    weighted: Candidates
    fallback: Candidates
    shed_below: int
    shed: Decision
    no_eligible_engine: Decision
    all_down: Decision
    no_other_engine: Decision

    def shed_limit(self, tier: int | None) -> int:
        """Give `shed_below` for a request of this tier (0 = shed last); None is the route's own.

        A request less important than its route is shed as soon as the route sheds at all; a more important one only
        where the route sheds everything.
        """
        if tier is None or tier == self.weights.tier or self.shed_below in (0, _ALL):
            return self.shed_below
        return _ALL if tier > self.weights.tier else 0


def build_table(weights: RouteWeights, settings: DataPlaneSettings, previous: RouteTable | None = None) -> RouteTable:
    """Make a route ready; slots are taken from `previous` where the same engines have the same weights."""
    routed = {t.engine_id: _routed(weights, t.engine_id, t.address, DecisionReason.SLOT) for t in weights.targets}
    ppm = {t.engine_id: t.weight_ppm for t in weights.targets}
    size = table_size(weights, settings)
    if previous is not None and previous.size == size and _ppm(previous.weights) == ppm:
        engines, slots = tuple(e for e in sorted(ppm) if ppm[e] > 0), previous.slots
    else:
        engines, owners = slot_table(ppm, size)
        slots = array("H" if len(engines) <= 1 << 16 else "I")
        slots.frombytes(owners.astype(np.dtype(f"u{slots.itemsize}")).tobytes())
    by_slot = tuple(routed[engine] for engine in engines)
    return RouteTable(
        weights=weights,
        size=size if engines else 0,
        slots=slots,
        by_slot=by_slot,
        by_hint={e: _routed(weights, e, routed[e].address, DecisionReason.HINT) for e in engines},
        weighted=Candidates(by_slot, [ppm[engine] for engine in engines]),
        fallback=_fallback(weights),
        shed_below=round(weights.shed_ratio * _ALL),
        shed=_refused(weights, Outcome.SHED, DecisionReason.SHED, settings.shed_retry_after_s),
        no_eligible_engine=_refused(
            weights, Outcome.REFUSED, DecisionReason.NO_ELIGIBLE_ENGINE, settings.retry_after_s
        ),
        all_down=_refused(weights, Outcome.REFUSED, DecisionReason.ALL_DOWN, settings.retry_after_s),
        no_other_engine=_refused(weights, Outcome.REFUSED, DecisionReason.NO_OTHER_ENGINE, settings.retry_after_s),
    )


def table_size(weights: RouteWeights, settings: DataPlaneSettings) -> int:
    """Give the number of slots: by all engines the route names, the excluded ones too.

    Counting only the live ones would rebuild every slot, and move every session, when the 33rd of them dies.
    """
    named = len(weights.targets) + len(weights.excluded)
    return settings.large_table_size if named > settings.large_above else settings.table_size


def _ppm(weights: RouteWeights) -> dict[str, int]:
    return {t.engine_id: t.weight_ppm for t in weights.targets}


def _fallback(weights: RouteWeights) -> Candidates:
    excluded = {e.engine_id for e in weights.excluded}
    usable = [t for t in weights.fallback if t.engine_id not in excluded]
    decisions = [_routed(weights, t.engine_id, t.address, DecisionReason.FALLBACK_STALE) for t in usable]
    return Candidates(decisions, [t.weight_ppm for t in usable])


def _routed(weights: RouteWeights, engine_id: str, address: str | None, reason: DecisionReason) -> Decision:
    return Decision(Outcome.ROUTED, engine_id, address, reason, weights.epoch, weights.version)


def _refused(weights: RouteWeights, outcome: Outcome, reason: DecisionReason, retry_after_s: float) -> Decision:
    return Decision(outcome, None, None, reason, weights.epoch, weights.version, retry_after_s)
