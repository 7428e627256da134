"""A comparison as one JSON document: everything that the page and the tables show, and nothing that they compute anew.

Its form is `comparison.schema.json`. Numbers are rounded to five digits: more would be noise, and makes files large.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from headrace.replay.report.differences import Difference
from headrace.replay.report.legend import legend
from headrace.replay.score.cautions import cautions
from headrace.replay.score.comparison import Compared, Comparison, Told
from headrace.replay.score.contradiction import by_decisions
from headrace.replay.score.digits import five_digits
from headrace.replay.score.groups import Group
from headrace.replay.score.latency_mass import Floats, ecdf, quantile_s
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.sums import Of, end_to_end_s, per, unserved_percent
from headrace.replay.score.variant_score import VariantScore
from headrace.replay.score.verdict import best_of, verdict

FORMAT = "headrace.replay.comparison/1"
SHOWN_ENGINES = 12
"""Engines whose load is drawn over time: those with the most requests over all variants."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """What was replayed.

    Attributes:
        title: what the report is called.
        source: where the ticks are from, in a sentence.
        closed_loop: whether each variant met signals of its own weights (a simulation), or all met recorded ones.
        notes: what a reader should know besides: gaps, retention, an interrupted run.
        complete: False where the run was interrupted.
    """

    title: str
    source: str
    closed_loop: bool
    notes: tuple[str, ...] = ()
    complete: bool = True


def document(comparison: Comparison, origin: Origin, differences: Sequence[Difference] = ()) -> Json:
    """Give the document."""
    shown = _shown_engines([c.score for c in comparison.variants])
    first = comparison.variants[0].score
    return {
        "format": FORMAT,
        "title": origin.title,
        "source": origin.source,
        "closed_loop": origin.closed_loop,
        "complete": origin.complete,
        "notes": list(origin.notes),
        "from_ms": first.from_ms,
        "to_ms": first.to_ms,
        "recorded": comparison.recorded,
        "best": best_of(comparison).score.name,
        "verdict": list(verdict(comparison)),
        "cautions": list(cautions(comparison, closed_loop=origin.closed_loop)),
        "legend": _rounded(legend(comparison)),
        "blocks": {"count": comparison.blocks[0], "seconds": comparison.blocks[1]},
        "order_holds": comparison.order_holds,
        "calibration": _rounded(asdict(comparison.calibration)),
        "settings": asdict(comparison.settings),
        "lengths": comparison.spread,
        "cannot_tell": list(_cannot_tell(comparison, origin)),
        "variants": [_variant(c, comparison, shown) for c in comparison.variants],
        "differences": [_rounded(asdict(each)) for each in differences],
    }


def _variant(compared: Compared, comparison: Comparison, shown: Sequence[str]) -> Json:
    score = compared.score
    told: Json = _rounded(
        {
            "name": score.name,
            "policy": score.policy,
            "configuration": dict(comparison.configurations.get(score.name, {})),
            "ticks": score.ticks,
            "seconds": float(score.sums[Of.SECONDS]),
            "missing_s": float(score.sums[Of.MISSING]),
            "requests": float(score.sums[Of.OFFERED]),
            "numbers": {told.number.name: _number(told) for told in compared.numbers},
            "extrapolation": None if compared.extrapolation is None else asdict(compared.extrapolation),
            "sensitivity": {
                "slower_ms": compared.slower_ms,
                "faster_ms": compared.faster_ms,
                "slower_unserved_percent": unserved_percent(score.slower.sums),
                "faster_unserved_percent": unserved_percent(score.faster.sums),
            },
            "off_policy": _off_policy(compared, comparison),
            "sessions": None if score.sessions is None else asdict(score.sessions),
            "met": _met(score),
            "slow_engines": score.slow,
            "groups": {
                kind: [_group(name, group) for name, group in groups.items()] for kind, groups in score.groups.items()
            },
            "series": _series(score, shown),
            "ecdf": [list(point) for point in ecdf(score.mass)],
            "flows": list(_flows(score)),
        }
    )
    return told


def _number(told: Told) -> Json:
    own, between = told.interval, told.difference_interval
    return {
        "label": told.number.label,
        "unit": told.number.unit,
        "better": told.number.better,
        "value": told.value,
        "low": None if own is None else own.low,
        "high": None if own is None else own.high,
        "difference": told.difference,
        "difference_low": None if between is None else between.low,
        "difference_high": None if between is None else between.high,
        "word": str(told.word),
    }


def _off_policy(compared: Compared, comparison: Comparison) -> Json | None:
    found = compared.off_policy
    if found is None:
        return None
    told = {"outcome": "ESTIMATED" if isinstance(found, OffPolicyEstimate) else "REFUSED"} | asdict(found)
    against = by_decisions(compared, comparison)
    if against is None:
        return told
    return told | {
        "difference_ms": against.difference_ms,
        "difference_low_ms": against.interval.low,
        "difference_high_ms": against.interval.high,
        "contradicts": against.contradiction is not None,
    }


def _met(score: VariantScore) -> Json | None:
    """Give what simulated users met, over time and by latency; its numbers are among the others."""
    met = score.met
    if met is None:
        return None
    return {
        "requests": float(met.sums[Of.OFFERED]),
        "bin_s": met.bin_ms / 1000.0,
        "at_ms": [at_ms for at_ms, _ in met.bins],
        "mean_ms": [_ms(end_to_end_s(each.sums)) for _, each in met.bins],
        "unserved_percent": [unserved_percent(each.sums) for _, each in met.bins],
        "ecdf": [list(point) for point in ecdf(met.mass)],
    }


def _group(name: str, group: Group) -> Json:
    offered = group.sums[Of.OFFERED]
    unserved = group.sums[Of.SHED] + group.sums[Of.REFUSED]
    out: Json = {
        "name": name,
        "requests": float(offered),
        "unserved_percent": float(100.0 * unserved / offered) if offered > 0.0 else None,
        "mean_ms": _ms(end_to_end_s(group.sums)),
        "ttft_ms": _ms(per(group.sums, Of.TTFT, Of.SERVED)),
        "tbot_ms": _ms(per(group.sums, Of.TBOT, Of.SERVED)),
    }
    for prefix, mass in (("", group.end_to_end), ("ttft_", group.ttft), ("tbot_", group.tbot)):
        for q in (50, 95, 99):
            out[f"{prefix}p{q}_ms"] = _ms(quantile_s(mass, q / 100))
    return out


def _series(score: VariantScore, shown: Sequence[str]) -> Json:
    bins = [each for _, each in score.bins]
    seconds = [float(each.sums[Of.SECONDS]) or 1.0 for each in bins]
    loads = {engine: i for i, engine in enumerate(score.engines)}
    routes: dict[str, dict[str, list[float]]] = {route: {} for route in score.watched}
    for route, engine in sorted({pair for each in bins for pair in each.shares}):
        routes[route][engine] = [
            each.shares.get((route, engine), 0.0) / s for each, s in zip(bins, seconds, strict=True)
        ]
    return {
        "bin_s": score.bin_ms / 1000.0,
        "at_ms": [at for at, _ in score.bins],
        "mean_ms": [_ms(end_to_end_s(each.sums)) for each in bins],
        "offered_rps": [float(each.sums[Of.OFFERED]) / s for each, s in zip(bins, seconds, strict=True)],
        "unserved_percent": [unserved_percent(each.sums) for each in bins],
        "moved_percent": [100.0 * float(each.sums[Of.MOVED]) for each in bins],
        "load": {
            engine: [_at(each.load, loads[engine]) / s for each, s in zip(bins, seconds, strict=True)]
            for engine in shown
            if engine in loads
        },
        "weights": routes,
    }


def _flows(score: VariantScore) -> Iterable[Json]:
    for cluster, requests in score.flows:
        for i in np.flatnonzero(requests > 0.0).tolist():
            yield {"cluster": cluster, "engine": score.engines[i], "requests": float(requests[i])}


def _shown_engines(scores: Sequence[VariantScore]) -> list[str]:
    total: dict[str, float] = {}
    for score in scores:
        for engine, requests in zip(score.engines, score.engine_sums[0].tolist(), strict=False):
            total[engine] = total.get(engine, 0.0) + requests
    return sorted(sorted(total, key=lambda engine: (-total[engine], engine))[:SHOWN_ENGINES])


def _cannot_tell(comparison: Comparison, origin: Origin) -> Iterable[str]:
    rules, variants = comparison.settings, comparison.variants
    if not origin.closed_loop:
        yield (
            "Recorded signals belong to the recorded weights: a policy that steers by latency or load was shown what "
            "the recorded weights caused, not what its own would have. `headrace replay simulate` closes that loop."
        )
    yield (
        "Latencies are means of fitted profiles at the load of each tick, with the chance of Poisson arrivals around "
        "it, and a queue beyond the wall: bursts beyond that chance that are shorter than a tick, and differences "
        "between requests other than their length, are not in them."
    )
    yield (
        "Data planes are taken to leave out engines whose first tokens come late as headrace's do by default; near the "
        "wall it is chance which engine that meets and when, and another one is as likely as the scored one."
    )
    yield f"Lengths of answers: {comparison.spread}. They spread alike for all variants."
    if any(c.score.sessions is None for c in variants):
        has = "Flows have" if origin.closed_loop else "History has"
        yield (
            f"{has} no sessions: lost KV caches are estimated from how much traffic was moved, with a turn every "
            f"{rules.turn_s:g} s."
        )
    elif not origin.closed_loop:
        yield (
            "Lost KV caches are those of sampled sessions, by each variant's own slot tables with every engine up: "
            "sessions that data planes sent elsewhere for a while, and caches that were evicted, are not in them."
        )
    yield (
        f"An engine is assumed to hold {rules.queue_per_slot:g} waiting requests for each one in service, and to "
        "refuse what is beyond; a refused request is retried once, within the retry ratio, by the same weights."
    )
    yield (
        "A dead engine counts as gone from its last signal, and data planes as going round it at once: requests that "
        "were lost with it are not counted."
    )
    slow = sorted({engine for c in variants for engine in c.score.slow})
    if slow:
        shown = "were seen to be" if origin.closed_loop else "history shows as"
        yield f"Engines that {shown} slow are scored as slow: {', '.join(slow[:8])}."
    missing = max(float(c.score.sums[Of.MISSING]) for c in variants)
    if missing > 0.0:
        yield f"{missing:,.0f} s of the range hold no tick, and are not scored."
    outside = max((c.told("unmeasured_percent").value or 0.0) for c in variants)
    if outside > 0.0:
        yield (
            f"Up to {outside:.1f} % of requests ran at loads where no profile was measured; the table bounds the mean "
            "by a curve that is flat there and one that rises twice as fast."
        )


def _at(values: Floats, index: int) -> float:
    return float(values[index]) if index < len(values) else 0.0


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return five_digits(value)
    if isinstance(value, Mapping):
        return {str(name): _rounded(inner) for name, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in cast("Sequence[Any]", value)]
    return value
