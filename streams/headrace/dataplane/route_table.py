"""One route made ready for requests: its slot table, and every answer it may give, made before any request asks.

Built off the request thread, from one `RouteWeights`, and never changed. A decision is picked, not made: the usual
request allocates nothing. Memory is two bytes a slot (four above 65,536 engines).
"""

from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.failover import Failover, Floats
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import Ints, slot_table
from headrace.schemas.weights import PPM, FallbackTarget, Reason, RouteWeights, Target

SHED_BITS: Final = 32
"""A session is shed where the highest 32 bits of its hash are below shed_ratio x 2^32: the set grows with the ratio."""
SHED_SHIFT: Final = 64 - SHED_BITS
"""What a session's hash of 64 bits is shifted by, to be held against a limit."""
_ALL: Final = 1 << SHED_BITS


@dataclass(frozen=True, slots=True)
class RouteTable:
    """What `route()` looks at for one route.

    Attributes:
        name: the model and the request class.
        weights: the record this was built from.
        size: number of slots; 0 where no engine has a weight.
        slots: for each slot, the index into `by_slot`.
        by_slot: the decision for each engine with a weight, sorted by engine.
        by_hint: the same by engine, for callers that ask for one.
        ppm: the same engines' weights.
        weighted: the same engines, for the scan.
        fallback: the snapshot's static fallback, without the engines that it excludes.
        failover: where the sessions of engines that are out go; None where the snapshot does not say.
        expected_ttft_s: time to first token that the snapshot expects of each engine, its network included; without
            the engines of which it expects nothing.
        shed_below: of the session's highest 32 bits; 2^32 sheds all.
    """

    name: tuple[str, str]
    weights: RouteWeights
    size: int
    slots: "array[int]"
    by_slot: tuple[Decision, ...]
    by_hint: Mapping[str, Decision]
    ppm: Mapping[str, int]
    weighted: Candidates
    fallback: Candidates
    failover: Failover | None
    expected_ttft_s: Mapping[str, float]
    shed_below: int
    shed: Decision
    throttled: Decision
    no_eligible_engine: Decision
    all_down: Decision
    no_other_engine: Decision

    def shed_limit(self, tier: int | None, ratio: float | None = None) -> int:
        """Give what `shed_below` is for a request of this tier (0 = shed last); None is the route's own.

        A request less important than its route is shed as soon as the route sheds at all; a more important one only
        where the route sheds everything. `ratio`, where given, stands for the route's own: some conversations are
        shed before others.
        """
        if self.shed_below in (0, _ALL) or tier is None or tier == self.weights.tier:
            return self.shed_below if ratio is None or self.shed_below in (0, _ALL) else round(ratio * _ALL)
        return _ALL if tier > self.weights.tier else 0

    def shed_limit_at(self, tier: int | None, ratio: float) -> int:
        """Give what `shed_limit` would be if the route shed this share of its requests, above 0."""
        if tier is None or tier == self.weights.tier or ratio >= 1.0:
            return round(min(ratio, 1.0) * _ALL)
        return _ALL if tier > self.weights.tier else 0

    def unplaced(self, down: Collection[str]) -> float:
        """Give the share of the sessions that are not shed, 0..1, whose engine is down and that nobody has room for.

        0 where every engine that might have room is down, too: then the fallback is asked, which has room of its own.
        """
        if not down or self.failover is None or all(engine in down for engine in self.failover.engines):
            return 0.0
        return sum(
            t.weight_ppm / PPM * (1.0 - t.failover_kept)
            for t in self.weights.targets
            if t.engine_id in down and t.failover_kept is not None
        )

    @property
    def replaceable(self) -> frozenset[str]:
        """Give the engines whose sessions have a place elsewhere, as far as the snapshot says anything of it."""
        if len(self.ppm) + (self.failover is not None) < 2:
            return frozenset()
        return frozenset(t.engine_id for t in self.weights.targets if t.failover_kept in (None, 1.0))

    @property
    def engines(self) -> frozenset[str]:
        """Every engine that this route may use or has excluded."""
        w = self.weights
        return frozenset(e.engine_id for some in (w.targets, w.excluded, w.fallback, w.failover) for e in some)

    def slots_of(self, engines: Collection[str]) -> Ints:
        """Give the slots that these engines have, in order."""
        owners = np.frombuffer(self.slots, np.dtype(f"u{self.slots.itemsize}"))
        return np.flatnonzero(np.isin(owners, [i for i, d in enumerate(self.by_slot) if d.engine_id in engines]))

    def limits_of(self, limits: Mapping[str, int]) -> tuple[Ints, Floats]:
        """Give the slots of the engines that have a limit, in order, and the limit of each."""
        owners = np.frombuffer(self.slots, np.dtype(f"u{self.slots.itemsize}"))
        of_slot = np.array([limits.get(str(d.engine_id), 0) for d in self.by_slot], np.float64)[owners]
        slots = np.flatnonzero(of_slot)
        return slots, of_slot[slots]

    def weight(self, engines: Iterable[str]) -> int:
        """Give the weight of these engines together, in ppm; engines that have none here weigh nothing."""
        return sum(self.ppm.get(engine, 0) for engine in engines)


def build_table(weights: RouteWeights, settings: DataPlaneSettings, previous: RouteTable | None = None) -> RouteTable:
    """Make a route ready; slots are taken from `previous` where the same engines have the same weights."""
    routed = {t.engine_id: _routed(weights, t, DecisionReason.SLOT) for t in weights.targets}
    ppm = {t.engine_id: t.weight_ppm for t in weights.targets}
    size = table_size(weights, settings)
    if previous is not None and previous.size == size and _ppm(previous.weights) == ppm:
        engines, slots = tuple(e for e in sorted(ppm) if ppm[e] > 0), previous.slots
    else:
        engines, owners = slot_table(ppm, size)
        slots = array("H" if len(engines) <= 1 << 16 else "I")
        slots.frombytes(owners.astype(np.dtype(f"u{slots.itemsize}")).tobytes())
    by_slot = tuple(routed[engine] for engine in engines)
    weighing = {engine: ppm[engine] for engine in engines}
    return RouteTable(
        name=(weights.model, weights.request_class),
        weights=weights,
        size=size if engines else 0,
        slots=slots,
        by_slot=by_slot,
        by_hint={e: routed[e].because(DecisionReason.HINT, 1.0) for e in engines},
        ppm=weighing,
        weighted=Candidates(by_slot, list(weighing.values())),
        fallback=_fallback(weights),
        failover=_failover(weights, {e: routed[e] for e in engines}, weighing, size),
        expected_ttft_s={t.engine_id: t.ttft_s + t.network_s for t in weights.targets if t.ttft_s is not None},
        shed_below=round(weights.shed_ratio * _ALL),
        shed=_refused(weights, Outcome.SHED, DecisionReason.SHED, settings.shed_retry_after_s),
        throttled=_refused(weights, Outcome.SHED, DecisionReason.THROTTLED, settings.retry_after_s),
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
    decisions = [_routed(weights, t, DecisionReason.FALLBACK_STALE) for t in usable]
    return Candidates(decisions, [t.weight_ppm for t in usable])


def _failover(
    weights: RouteWeights, routed: Mapping[str, Decision], ppm: Mapping[str, int], size: int
) -> Failover | None:
    excluded = {e.engine_id for e in weights.excluded}
    taken = {t.engine_id: t for t in weights.failover if t.engine_id not in excluded and t.weight_ppm > 0}
    if not taken or not ppm:
        return None
    shares = {engine: t.weight_ppm for engine, t in taken.items()}
    brought = {e: _routed(weights, t, DecisionReason.FAILOVER) for e, t in taken.items()}
    decisions = {**brought, **routed}
    # A pinned engine to which the failover gives nothing has all that its pin allows: it does not race for more.
    full = {t.engine_id for t in weights.targets if t.reason is Reason.PINNED and t.engine_id not in shares}
    own = {e: weight for e, weight in ppm.items() if e not in full}
    return Failover([decisions[e] for e in sorted(decisions)], own, shares, size)


def _routed(weights: RouteWeights, t: Target | FallbackTarget, reason: DecisionReason) -> Decision:
    version = weights.epoch, weights.version
    return Decision(Outcome.ROUTED, t.engine_id, t.address, reason, *version, None, t.weight_ppm / PPM)


def _refused(weights: RouteWeights, outcome: Outcome, reason: DecisionReason, retry_after_s: float) -> Decision:
    return Decision(outcome, None, None, reason, weights.epoch, weights.version, retry_after_s)
