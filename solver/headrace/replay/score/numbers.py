"""What a variant is told by: each number with its unit, which way is better, and how it is read from a score."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from headrace.replay.score.interval import (
    Statistic,
    cold_percent,
    mean_ms,
    moved_percent,
    quantile_ms,
    refused_percent,
    shed_percent,
    unserved_percent,
)
from headrace.replay.score.latency_mass import Floats, quantile_s
from headrace.replay.score.sums import Of, end_to_end_s, moved_percent_a_minute, per
from headrace.replay.score.variant_score import VariantScore

Read = Callable[[VariantScore], float | None]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a variant.

    Attributes:
        name: in JSON and CSV.
        label: for people.
        unit: `ms`, `%`, ...; empty for a ratio.
        better: -1 where less is better, 1 where more is, 0 where neither.
        read: reads it from a score; None where there is nothing to read it from.
        statistic: computes it of bootstrap draws; None where it has no interval.
        met: whether it is of what simulated users met, not of the score.
    """

    name: str
    label: str
    unit: str
    better: int
    read: Read
    statistic: Statistic | None = None
    met: bool = False


def _quantile(of: Callable[[VariantScore], Floats], q: float) -> Read:
    def read(score: VariantScore) -> float | None:
        value = quantile_s(of(score), q)
        return None if value is None else 1000.0 * value

    return read


def _percent(what: Of, of: Of) -> Read:
    def read(score: VariantScore) -> float | None:
        value = per(score.sums, what, of)
        return None if value is None else 100.0 * value

    return read


def _mean(what: Of) -> Read:
    def read(score: VariantScore) -> float | None:
        value = per(score.sums, what, Of.SERVED)
        return None if value is None else 1000.0 * value

    return read


def _end_to_end(score: VariantScore) -> float | None:
    value = end_to_end_s(score.sums)
    return None if value is None else 1000.0 * value


def _unserved(score: VariantScore) -> float | None:
    offered = score.sums[Of.OFFERED]
    return float(100.0 * (score.sums[Of.SHED] + score.sums[Of.REFUSED]) / offered) if offered > 0.0 else None


def _cold(score: VariantScore) -> float | None:
    if score.sessions is not None:
        return score.sessions.lost_percent
    return _percent(Of.COLD, Of.SERVED)(score)


def _reversals(score: VariantScore) -> float | None:
    minutes = score.sums[Of.SECONDS] / 60.0
    return float(score.sums[Of.REVERSALS] / minutes) if minutes > 0.0 else None


def fairness(score: VariantScore) -> float | None:
    """Give Jain's index over clusters of (share served / mean latency): 1 where all fare alike, 1/n where one has all.

    Records name no tenants, so a cluster stands for its users. Source: Jain, Chiu and Hawe 1984.
    """
    fares: list[float] = []
    for group in score.groups["cluster"].values():
        latency, offered = end_to_end_s(group.sums), group.sums[Of.OFFERED]
        if offered > 0.0:
            fares.append(0.0 if latency is None else float(group.sums[Of.SERVED] / offered) / latency)
    squares = sum(x * x for x in fares)
    return sum(fares) ** 2 / (len(fares) * squares) if squares > 0.0 else None


def _of_users(statistic: Statistic) -> Read:
    """Read a number of what simulated users met as the bootstrap computes it of a draw."""

    def read(score: VariantScore) -> float | None:
        if score.met is None:
            return None
        value = float(statistic(score.met.sums[None, :], score.met.mass[None, :])[0])
        return value if math.isfinite(value) else None

    return read


def _met(name: str, label: str, unit: str, statistic: Statistic) -> Number:
    return Number(f"met_{name}", f"met, {label}", unit, -1, _of_users(statistic), statistic, met=True)


MET: tuple[Number, ...] = (
    _met("mean_ms", "mean", "ms", mean_ms),
    _met("p50_ms", "p50", "ms", quantile_ms(0.5)),
    _met("p95_ms", "p95", "ms", quantile_ms(0.95)),
    _met("p99_ms", "p99", "ms", quantile_ms(0.99)),
    _met("failed_percent", "failed", "%", refused_percent),
    _met("shed_percent", "shed", "%", shed_percent),
    _met("unserved_percent", "failed or shed", "%", unserved_percent),
)
"""What simulated users met; of a simulation only."""

NUMBERS: tuple[Number, ...] = (
    Number("mean_ms", "end to end, mean", "ms", -1, _end_to_end, mean_ms),
    Number("p50_ms", "end to end, p50", "ms", -1, _quantile(lambda s: s.mass, 0.5), quantile_ms(0.5)),
    Number("p95_ms", "end to end, p95", "ms", -1, _quantile(lambda s: s.mass, 0.95), quantile_ms(0.95)),
    Number("p99_ms", "end to end, p99", "ms", -1, _quantile(lambda s: s.mass, 0.99), quantile_ms(0.99)),
    Number("network_ms", "network, mean", "ms", -1, _mean(Of.NETWORK)),
    Number("ttft_ms", "first token, mean", "ms", -1, _mean(Of.TTFT)),
    Number("ttft_p50_ms", "first token, p50", "ms", -1, _quantile(lambda s: s.ttft, 0.5)),
    Number("ttft_p95_ms", "first token, p95", "ms", -1, _quantile(lambda s: s.ttft, 0.95)),
    Number("ttft_p99_ms", "first token, p99", "ms", -1, _quantile(lambda s: s.ttft, 0.99)),
    Number("tbot_ms", "between tokens, mean", "ms", -1, _mean(Of.TBOT)),
    Number("tbot_p50_ms", "between tokens, p50", "ms", -1, _quantile(lambda s: s.tbot, 0.5)),
    Number("tbot_p95_ms", "between tokens, p95", "ms", -1, _quantile(lambda s: s.tbot, 0.95)),
    Number("tbot_p99_ms", "between tokens, p99", "ms", -1, _quantile(lambda s: s.tbot, 0.99)),
    Number("unserved_percent", "shed or refused", "%", -1, _unserved, unserved_percent),
    Number("shed_percent", "shed by the weights", "%", -1, _percent(Of.SHED, Of.OFFERED), shed_percent),
    Number("refused_percent", "refused by engines", "%", -1, _percent(Of.REFUSED, Of.OFFERED), refused_percent),
    Number("retry_percent", "retry load", "%", -1, _percent(Of.RETRIES, Of.OFFERED)),
    Number("overload_s", "overload, engine seconds", "s", -1, lambda s: float(s.sums[Of.OVERLOADED])),
    Number(
        "moved_percent_a_minute",
        "moved traffic",
        "%/min",
        -1,
        lambda s: moved_percent_a_minute(s.sums),
        moved_percent,
    ),
    Number("reversals_a_minute", "reversals", "/min", -1, _reversals),
    Number("cold_percent", "KV caches lost", "%", -1, _cold, cold_percent),
    Number("load", "mean load", "", 0, lambda s: per(s.sums, Of.LOAD, Of.SECONDS)),
    Number("imbalance", "largest load / mean", "", -1, lambda s: per(s.sums, Of.IMBALANCE, Of.SECONDS)),
    Number("fairness", "fairness over clusters", "", 1, fairness),
    Number("unmeasured_percent", "at loads never measured", "%", 0, _percent(Of.UNMEASURED, Of.SERVED)),
)
