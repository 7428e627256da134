"""An explanation in plain sentences: the price, what was rejected, what binds and what would help; what acted on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.schemas.weights import Protected
from headrace.solver.core.problem import Outcomes
from headrace.solver.core.protections.penalty import ERRORS
from headrace.solver.core.why.explanation import Alternative, Explanation

CORNER = 0.25
"""Chords always meet in corners; one that is worth a word turns by this share of the slope."""
BEYOND = 1.005
"""A load from which an engine is told to be beyond its wall, not at it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What sentences say beside an explanation.

    Attributes:
        served_rps: what all routes serve: what the mean is of.
        shed_work: the work a second that is shed where the engine may come to serve it.
        work: of one of the route's requests.
        plain: whether every request is of work 1, so that nobody need be told of work.
        ended: how the engine's requests ended; None where nobody counted.
        tolerated: the share of failures that is always usual.
    """

    served_rps: float
    shed_work: float
    work: float
    plain: bool
    ended: Outcomes | None = None
    tolerated: float = 1.0


def sentences_of(e: Explanation, asked: Asked) -> tuple[str, ...]:
    """Give the sentences: three, and a fourth where something acted on the engine, or it fails too much."""
    three = _price(e, asked.work), _rejected(e), _help(e, asked)
    acted = acted_words(e.engine_id, e.protections, asked.ended, asked.tolerated)
    return (*three, acted) if acted else three


def acted_words(engine_id: str, protections: Sequence[Protected], ended: Outcomes | None, tolerated: float) -> str:
    """Say what acted on an engine, and which of its requests failed where that is not said by it; else nothing."""
    acted = "; ".join(f"{p.sentence} ({p.protection})" for p in protections)
    failed = ""
    if ended is not None and ended.requests and not any(p.protection == ERRORS for p in protections):
        share = ended.failed / ended.requests
        if share > tolerated:
            counts = f"{ended.failed} of {ended.requests} requests failed in {ended.span_s:.0f} s"
            failed = f"{counts}, {100 * share:.1f} %; nothing is taken from it for that"
    told = "; ".join(part for part in (acted, failed) if part)
    return f"Of {engine_id} itself: {told}." if told else ""


def one_more_words(engine_id: str, mean_ms: tuple[float, float], shed_rps: tuple[float, float]) -> str:
    """Say what one more replica does, (before, after): the price's slope is only the most that it may."""
    shed = f", and {shed_rps[1]:.1f} RPS shed instead of {shed_rps[0]:.1f}" if shed_rps[0] > 0.0 else ""
    mean = f"mean {mean_ms[1]:.1f} ms instead of {mean_ms[0]:.1f} ms"
    return f"Solved again with one more replica of {engine_id}: {mean}{shed}."


def _price(e: Explanation, work: float) -> str:
    where = f"{e.route.cluster} for {e.route.model} ({e.route.request_class})"
    if e.terms is None or e.utilisation is None:
        why = "no reason is known" if e.excluded is None else f"{e.excluded.reason}, {e.excluded.sentence}"
        return f"{where} may not use {e.engine_id}: {why}."
    t = e.terms
    beyond = e.utilisation > BEYOND
    at = "its wall" if beyond else f"{e.utilisation * 100:.0f} % load"
    parts = [f"{t.network_ms:.1f} ms network", f"{t.engine_ms:.0f} ms engine at {at}"]
    if t.congestion_ms >= 0.05:
        parts.append(f"{t.congestion_ms:.0f} ms more waiting for others there")
    if t.scarcity_ms >= 0.05:
        parts.append(f"{t.scarcity_ms:.0f} ms because it is full")
    if abs(t.move_ms) >= 0.05:
        parts.append(f"{t.move_ms:.0f} ms for leaving a warm cache")
    # A latency that falls with load makes others faster: that is taken off, not waited for.
    less = f" - {-t.congestion_ms:.0f} ms less waiting for others there" if t.congestion_ms <= -0.05 else ""
    sum_ = f"{' + '.join(parts)}{less} = {t.marginal_ms:.0f} ms"
    if beyond:
        sum_ = f"{sum_}, and a queue that grows: it is sent {e.utilisation * 100:.0f} % of what it can serve"
    if e.weight_ppm == 0:
        against = "" if e.route_marginal_ms is None else f", {dearer(t.marginal_ms - e.route_marginal_ms, digits=0)}"
        return f"{where} sends {e.engine_id} nothing: a first request{_of(work)} would cost {sum_}{against}."
    flow = flow_words(e.weight_ppm, e.demand_rps, e.shed_ratio)
    return f"{where} sends {e.engine_id} {flow}: one more request{_of(work)} costs {sum_}."


def _of(work: float) -> str:
    return "" if work == 1.0 else f", of work {work:g},"


def flow_words(weight_ppm: int, demand_rps: float, shed_ratio: float) -> str:
    """Say a weight with what it is a share of: of what is served, which is not all where some is shed."""
    share = f"{weight_ppm / 10_000:.1f} %"
    if shed_ratio <= 0.0:
        return f"{share} of {demand_rps:.1f} RPS"
    shed = shed_ratio * demand_rps
    served = demand_rps - shed
    flow = f"{served * weight_ppm / 1e6:.1f} RPS, {share} of the {served:.1f} RPS that are served"
    return f"{flow} ({shed:.1f} of {demand_rps:.1f} RPS are shed)"


def _rejected(e: Explanation) -> str:
    ways = " and ".join(_way(a) for a in e.alternatives)
    out = ", ".join(f"{x.engine_id} ({x.reason})" for x in e.others_excluded[:3])
    if len(e.others_excluded) > 3:
        out = f"{out} and {len(e.others_excluded) - 3} more"
    none = "No other unused engine is open to it"
    if e.route_marginal_ms is None:
        none = "What others would cost is not known: it was decided without prices"
    rejected = f"Not used: {ways}" if ways else none
    return f"{rejected}; excluded: {out}." if out else f"{rejected}."


def _way(a: Alternative) -> str:
    first, *rest = a.engine_ids
    more = f" and {len(rest)} more" if rest else ""
    return f"{first}{more} in {a.site}, {dearer(a.gap_ms)}"


def dearer(gap_ms: float, digits: int = 1) -> str:
    """Say a gap to what is used; below it is what a pin, or the weights that stand, keep from being used."""
    size = f"{abs(gap_ms):.{digits}f}"
    if float(size) == 0.0:
        return "just as dear"
    return f"{size} ms {'too dear' if gap_ms > 0.0 else 'cheaper'}"


def _help(e: Explanation, asked: Asked) -> str:
    bound = f"Binding: {'; '.join(e.binding)}" if e.binding else "Nothing is at its bound"
    low, high = e.price_interval_ms or (0.0, None)
    if high is not None and high - low >= CORNER * high:
        corner = f"{e.engine_id} is at a corner of its curve, where its price may be {low:.0f} to {high:.0f} ms"
        bound = f"{bound}; {corner}"
    gain = _gain(e, asked)
    return f"{bound}; {gain}." if gain else f"{bound}."


def _gain(e: Explanation, asked: Asked) -> str:
    more = f"one more replica of {e.engine_id} would"
    work = "" if asked.plain else " of work 1"
    if asked.shed_work > 0.0 and e.terms is not None and e.route_marginal_ms is not None:
        # No ms here: the price of shedding is in every price, and the mean of what is served is another mean then.
        if e.replica_worth_rps:
            served = f"serve {e.replica_worth_rps:.1f} RPS{work} more of what is shed"
            return f"{more} {served}; the mean may rise, since more are served"
        why = "pins may refuse it" if e.replica_worth_rps is None else "others would have to make room"
        return f"{more} serve some, or none, of the {asked.shed_work:.1f} RPS{work} that are shed: {why}"
    if e.replica_worth_ms_rps is None or asked.served_rps <= 0.0:
        return ""
    # The optimum is convex in capacity, so its slope promises no less than a whole replica gives.
    each = e.replica_worth_ms_rps / asked.served_rps
    return f"{more} take up to {each:.1f} ms off the mean of {asked.served_rps:.0f} RPS"
