"""Why a session is at its engine, step by step, and what would have to change for it to be at another.

    hash of the key ─► shed? ─► slot = hash mod size ─► its engine, by weight ─► why the solver gave that weight

Pure: a snapshot's route and a key in, sentences out. It says what the weights decide; what a gateway knew besides (an
engine down, suspected or crowded at that moment) is only in the decision header, whose reason is explained with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import xxhash

from headrace.dataplane.avoidance import Limits, avoidance
from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.detour import LeftOut, detour
from headrace.dataplane.experience import Experience
from headrace.dataplane.route_table import SHED_BITS, RouteTable, build_table
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import slot_table
from headrace.infra.gateway.core.decision_header import DecisionHeader, engine_alias
from headrace.infra.request_why.reasons import reason_sentence
from headrace.infra.request_why.sentences import excluded_words, of_excluded, of_target, with_reason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, RouteWeights, Target


@dataclass(frozen=True, slots=True)
class Why:
    """An explanation: who was chosen by the weights (None where nobody was), for what reason, in which sentences."""

    route: str
    engine_id: str | None
    reason: DecisionReason
    slot: int | None
    size: int
    sentences: tuple[str, ...]


def explain_key(weights: RouteWeights, key: str, settings: DataPlaneSettings, rather_than: str | None = None) -> Why:
    """Explain where the weights put a session, and with `rather_than` why not there.

    Raises:
        InvalidInputError: the route does not know `rather_than`.
    """
    known = {e.engine_id for some in (weights.targets, weights.excluded) for e in some}
    if rather_than is not None and rather_than not in known:
        raise InvalidInputError("--rather-than", (f"{rather_than!r}; the route knows {', '.join(sorted(known))}",))
    table = build_table(weights, settings)
    point = xxhash.xxh3_64_intdigest(key.encode("utf-8", "surrogatepass"))
    place = point / 2**64
    says = [f"Route {weights.route}, weights of epoch {weights.epoch} version {weights.version}: {weights.sentence}"]
    if table.shed_below and point >> (64 - SHED_BITS) < table.shed_below:
        decision = table.shed if weights.targets else table.no_eligible_engine
        says.append(
            f"The session's hash is at {place:.4f} of the circle, and {weights.shed_ratio:.2%} are shed from 0 on: "
            f"it is kept once that ratio is at most {place:.4f}."
        )
        return _why(weights, table, decision, None, says)
    if not table.size:
        return _why(weights, table, table.no_eligible_engine, None, [*says, *excluded_words(weights)])
    slot = point % table.size
    decision = table.by_slot[table.slots[slot]]
    (target,) = (t for t in weights.targets if t.engine_id == decision.engine_id)
    held = round(target.weight_ppm / PPM * table.size)
    says.append(
        f"The session's slot is {slot} of {table.size}, one of about {held} that {target.engine_id} holds for its "
        f"weight of {target.weight_ppm / PPM:.2%}; any data plane with these weights says the same."
    )
    says.append(of_target(target))
    says += [_rather(weights, table, slot, target, rather_than)] if rather_than else _others(weights, target)
    says.append(_were_it_down(table, point, target.engine_id, settings))
    return _why(weights, table, decision, slot, says)


def explain_header(
    header: DecisionHeader, why: Why | None, settings: DataPlaneSettings, alias: Callable[[str], str] = engine_alias
) -> tuple[str, ...]:
    """Explain what a gateway decided, and hold it against what the weights alone say.

    `alias` gives the name that an engine goes by in headers.
    """
    says = [f"{header.outcome}, {header.reason}: {reason_sentence(header.reason, header.engine)}"]
    if header.attempt > 1:
        says.append(
            f"It was attempt {header.attempt}: an engine before had failed the request and was not asked again."
        )
    if why is None:
        return tuple(says)
    by_weights = None if why.engine_id is None else alias(why.engine_id)
    if header.outcome is not Outcome.ROUTED or header.engine == by_weights:
        return tuple(says)
    says.append(
        f"By the weights alone it would have been {by_weights or why.reason}: the difference is what that gateway "
        f"knew at that moment, or its own name for the engine, or another size of the table than {why.size}."
        if header.reason is not DecisionReason.SLOT
        else f"By these weights it would be {by_weights or why.reason}: the key or the version is not the one decided "
        f"by, or the table there is not of {settings.table_size} or {settings.large_table_size} slots."
    )
    return tuple(says)


def _why(weights: RouteWeights, table: RouteTable, decision: Decision, slot: int | None, says: list[str]) -> Why:
    says.insert(1, reason_sentence(decision.reason, decision.engine_id))
    return Why(str(weights.route), decision.engine_id, decision.reason, slot, table.size, tuple(says))


def _others(weights: RouteWeights, chosen: Target) -> list[str]:
    others = sorted((t for t in weights.targets if t is not chosen), key=lambda t: -t.weight_ppm)[:3]
    told = [f"{t.engine_id} has {t.weight_ppm / PPM:.2%}: {with_reason(t.sentence, t.reason)}." for t in others]
    return told + excluded_words(weights)


def _rather(weights: RouteWeights, table: RouteTable, slot: int, chosen: Target, other: str) -> str:
    if other == chosen.engine_id:
        return f"By these weights it does go to {other}."
    for excluded in weights.excluded:
        if excluded.engine_id == other:
            return f"Not to {of_excluded(excluded)}"
    (target,) = (t for t in weights.targets if t.engine_id == other)
    needed = weight_needed(table, slot, other)
    return (
        f"Not to {other}, which has {target.weight_ppm / PPM:.2%} ({with_reason(target.sentence, target.reason)}) "
        f"and does not hold this slot. It would with about {needed:.2%}, the others' weights in proportion."
    )


def weight_needed(table: RouteTable, slot: int, engine_id: str) -> float:
    """Give the least weight (0..1) at which the slot is the engine's, the others' in proportion, within 0.1 %.

    An engine's slots only grow with its weight but for the trim to quotas, which may give one back in between; the
    answer is then one of the weights at which the slot changes hands.
    """
    others = {engine: weight for engine, weight in table.ppm.items() if engine != engine_id}
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        share = (low + high) / 2
        rest = sum(others.values())
        ppm = {engine: round(weight / rest * (1 - share) * PPM) for engine, weight in others.items()}
        engines, owner = slot_table(ppm | {engine_id: round(share * PPM)}, table.size)
        low, high = (low, share) if engines[owner[slot]] == engine_id else (share, high)
    return high


def _were_it_down(table: RouteTable, point: int, chosen: str, settings: DataPlaneSettings) -> str:
    # What a router that has met nothing else sees: judged as it judges.
    nothing_met, never_panics = Experience(settings.guards, ""), Limits(ejected_max=0.0, panic_above=1.0)
    view = avoidance(table, (chosen,), nothing_met, never_panics, 0, 0)
    out = LeftOut.of(view, frozenset(), frozenset(), ())
    other = detour(table, point, out, settings.rehash_max, None)
    return f"Were {chosen} down, it would go to {other.engine_id or 'nobody'} ({other.reason}), and come back after."
