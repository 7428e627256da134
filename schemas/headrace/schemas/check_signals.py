"""What a signal must be before it is folded: run by every producer of ours, and again by the fold's reader.

All problems of a record are found at once. A non-finite or negative number never reaches a sum.
"""

import math
from collections.abc import Iterator

from headrace.schemas.check_series import MAX_AHEAD_MS, series_problems
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.histogram import BUCKETS, MAX_INDEX, MIN_INDEX
from headrace.schemas.ids import identifier_problem, is_identifier
from headrace.schemas.signals import Demand, Distribution, EngineSignals, EngineStatus, NetworkProbe, Outcomes

Signal = EngineSignals | Demand | NetworkProbe

MAX_PERIOD_MS = 600_000
MAX_DISTRIBUTIONS = 1024
MAX_SECONDS = 1e7
MAX_COUNT = 10**12
MAX_IN_ENGINE = 1e9
MAX_REPLICAS = 2**31 - 1
"""What an Avro `int` holds: the state's own fields could not say more."""

_Problem = tuple[RejectReason, str]


def check_signal(signal: Signal, timestamp_ms: int) -> Rejected | None:
    """Give the reason why a signal may not be used, with every problem in the detail; None where it may.

    Args:
        signal: the record as decoded.
        timestamp_ms: its Kafka timestamp, against which its own clock is held.
    """
    match signal:
        case EngineSignals() if _is_sound(signal, timestamp_ms):
            return None
        case EngineSignals():
            problems = list(_engine_problems(signal, timestamp_ms))
        case Demand():
            problems = list(_demand_problems(signal, timestamp_ms))
        case NetworkProbe():
            problems = list(_probe_problems(signal, timestamp_ms))
    if not problems:
        return None
    return Rejected(problems[0][0], "; ".join(text for _, text in problems))


def _is_sound(signal: EngineSignals, timestamp_ms: int) -> bool:
    """Say whether a signal has no problem, without looking for the words: the usual case, and the hottest path.

    True only where `_engine_problems` finds nothing; where it is False, that one says what it is.
    """
    if signal.series is not None or signal.lineage is not None:
        return False
    start_ms, end_ms, distributions, status = (
        signal.period_start_ms,
        signal.period_end_ms,
        signal.distributions,
        signal.status,
    )
    return (
        is_identifier(signal.engine_id)
        and is_identifier(signal.source)
        and 0 <= start_ms <= end_ms <= timestamp_ms + MAX_AHEAD_MS
        and end_ms - start_ms <= MAX_PERIOD_MS
        and len(distributions) <= MAX_DISTRIBUTIONS
        and len({(each.model, each.metric) for each in distributions}) == len(distributions)
        and all(map(_is_sound_distribution, distributions))
        and (status is None or _is_sound_status(status))
        and (signal.outcomes is None or not any(_outcomes(signal.outcomes)))
    )


def _is_sound_distribution(d: Distribution) -> bool:
    # A comparison with what is not finite is false, or beyond the bound.
    counts, count, zeros = d.bucket_counts, d.count, d.zero_count
    low, high = d.min_s, d.max_s
    return (
        is_identifier(d.model)
        and 0 < count <= MAX_COUNT
        and 0 <= zeros <= count
        and 0.0 <= d.sum_s <= MAX_SECONDS * count
        and (low is None or 0.0 <= low <= MAX_SECONDS)
        and (high is None or (0.0 if low is None else low) <= high <= MAX_SECONDS)
        and (
            (zeros + sum(counts) == count and min(counts) >= 0 and _is_inside(d.first_bucket, len(counts)))
            if counts
            else zeros in (0, count)
        )
    )


def _is_sound_status(status: EngineStatus) -> bool:
    replicas = (status.replicas_desired, status.replicas_ready, status.replicas_reporting)
    running, waiting, used = status.running, status.waiting, status.kv_usage
    return (
        all(number is None or 0 <= number <= MAX_REPLICAS for number in replicas)
        and (running is None or 0.0 <= running <= MAX_IN_ENGINE)
        and (waiting is None or 0.0 <= waiting <= MAX_IN_ENGINE)
        and (used is None or 0.0 <= used <= 1.0)
    )


def _is_inside(first: int, count: int) -> bool:
    return first >= MIN_INDEX and first + count <= MAX_INDEX + 1


def _engine_problems(signal: EngineSignals, timestamp_ms: int) -> Iterator[_Problem]:
    yield from _identifiers(engine_id=signal.engine_id, source=signal.source)
    yield from _period(signal.period_start_ms, signal.period_end_ms, timestamp_ms)
    if len(signal.distributions) > MAX_DISTRIBUTIONS:
        yield (
            RejectReason.OUT_OF_RANGE,
            f"distributions has {len(signal.distributions)} entries; at most {MAX_DISTRIBUTIONS}",
        )
        return
    seen: set[tuple[str, str]] = set()
    for i, distribution in enumerate(signal.distributions):
        yield from _distribution(f"distributions[{i}]", distribution)
        name = (distribution.model, distribution.metric)
        if name in seen:
            yield RejectReason.INCONSISTENT, f"distributions[{i}] repeats {distribution.metric} of {distribution.model}"
        seen.add(name)
    if signal.status is not None:
        yield from _status(signal.status)
    if signal.outcomes is not None:
        yield from _outcomes(signal.outcomes)
    if signal.series is not None or signal.lineage is not None:
        counts_too = bool(signal.distributions or signal.outcomes)
        yield from series_problems(signal.series, signal.lineage, timestamp_ms, counts_too=counts_too)


def _distribution(at: str, d: Distribution) -> Iterator[_Problem]:
    yield from _identifiers(**{f"{at}.model": d.model})
    yield from _seconds(f"{at}.sum_s", d.sum_s, MAX_SECONDS * max(1, d.count))
    for name, value in (("min_s", d.min_s), ("max_s", d.max_s)):
        if value is not None:
            yield from _seconds(f"{at}.{name}", value, MAX_SECONDS)
    yield from _count(f"{at}.count", d.count)
    yield from _count(f"{at}.zero_count", d.zero_count)
    if d.bucket_counts and min(d.bucket_counts) < 0:
        yield RejectReason.NEGATIVE, f"{at}.bucket_counts has {min(d.bucket_counts)}; at least 0"
    if len(d.bucket_counts) > BUCKETS or (
        d.bucket_counts and not MIN_INDEX <= d.first_bucket <= MAX_INDEX + 1 - len(d.bucket_counts)
    ):
        last = d.first_bucket + len(d.bucket_counts) - 1
        yield (
            RejectReason.OUT_OF_RANGE,
            f"{at} has buckets {d.first_bucket} to {last}; allowed are {MIN_INDEX} to {MAX_INDEX}",
        )
    counted = d.zero_count + sum(d.bucket_counts)
    if (d.bucket_counts or d.zero_count) and counted != d.count:
        yield RejectReason.INCONSISTENT, f"{at}.bucket_counts and zero_count add up to {counted}; count is {d.count}"
    if d.count == 0 and d.sum_s != 0.0:
        yield RejectReason.INCONSISTENT, f"{at}.sum_s is {d.sum_s} with count 0"
    if d.min_s is not None and d.max_s is not None and d.min_s > d.max_s:
        yield RejectReason.INCONSISTENT, f"{at}.min_s is {d.min_s}, above max_s {d.max_s}"


def _status(status: EngineStatus) -> Iterator[_Problem]:
    for name in ("replicas_desired", "replicas_ready", "replicas_reporting"):
        replicas: int | None = getattr(status, name)
        if replicas is not None:
            yield from _count(f"status.{name}", replicas, MAX_REPLICAS)
    for name, bound in (("running", MAX_IN_ENGINE), ("waiting", MAX_IN_ENGINE), ("kv_usage", 1.0)):
        value: float | None = getattr(status, name)
        if value is not None:
            yield from _number(f"status.{name}", value, bound)


def _outcomes(outcomes: tuple[Outcomes, ...]) -> Iterator[_Problem]:
    if len(outcomes) > MAX_DISTRIBUTIONS:
        yield RejectReason.OUT_OF_RANGE, f"outcomes has {len(outcomes)} entries; at most {MAX_DISTRIBUTIONS}"
        return
    seen: set[str] = set()
    for i, each in enumerate(outcomes):
        yield from _identifiers(**{f"outcomes[{i}].model": each.model})
        yield from _count(f"outcomes[{i}].succeeded", each.succeeded)
        yield from _count(f"outcomes[{i}].failed", each.failed)
        if each.model in seen:
            yield RejectReason.INCONSISTENT, f"outcomes[{i}] repeats {each.model}"
        seen.add(each.model)


def _demand_problems(signal: Demand, timestamp_ms: int) -> Iterator[_Problem]:
    yield from _identifiers(
        cluster=signal.cluster, model=signal.model, request_class=signal.request_class, source=signal.source
    )
    yield from _period(signal.period_start_ms, signal.period_end_ms, timestamp_ms)
    yield from _count("offered", signal.offered)
    yield from _count("rejected", signal.rejected)
    yield from _count("retries", signal.retries)
    if signal.rejected > signal.offered:
        yield RejectReason.INCONSISTENT, f"rejected is {signal.rejected}, above offered {signal.offered}"
    if signal.series is not None or signal.lineage is not None:
        counts_too = bool(signal.offered or signal.retries)
        yield from series_problems(signal.series, signal.lineage, timestamp_ms, counts_too=counts_too)


def _probe_problems(signal: NetworkProbe, timestamp_ms: int) -> Iterator[_Problem]:
    yield from _identifiers(from_cluster=signal.from_cluster, to_site=signal.to_site, source=signal.source)
    yield from _period(signal.at_ms, signal.at_ms, timestamp_ms)
    if signal.rtt_s is not None:
        yield from _seconds("rtt_s", signal.rtt_s, 3600.0)
    yield from series_problems(None, signal.lineage, timestamp_ms, counts_too=False)


def _identifiers(**names: str) -> Iterator[_Problem]:
    for name, value in names.items():
        problem = identifier_problem(name, value)
        if problem is not None:
            yield RejectReason.BAD_IDENTIFIER, problem


def _period(start_ms: int, end_ms: int, timestamp_ms: int) -> Iterator[_Problem]:
    if start_ms < 0:
        yield RejectReason.NEGATIVE, f"period_start_ms is {start_ms}; at least 0"
    if end_ms < start_ms:
        yield RejectReason.INCONSISTENT, f"period_end_ms is {end_ms}, before period_start_ms {start_ms}"
    if end_ms - start_ms > MAX_PERIOD_MS:
        yield RejectReason.OUT_OF_RANGE, f"the period is {end_ms - start_ms} ms; at most {MAX_PERIOD_MS}"
    if end_ms > timestamp_ms + MAX_AHEAD_MS:
        yield (
            RejectReason.TIME_IN_FUTURE,
            f"period_end_ms is {end_ms}, {end_ms - timestamp_ms} ms after the Kafka timestamp; at most {MAX_AHEAD_MS}",
        )


def _count(name: str, value: int, bound: int = MAX_COUNT) -> Iterator[_Problem]:
    if value < 0:
        yield RejectReason.NEGATIVE, f"{name} is {value}; at least 0"
    elif value > bound:
        yield RejectReason.OUT_OF_RANGE, f"{name} is {value}; at most {bound}"


def _seconds(name: str, value: float, bound: float) -> Iterator[_Problem]:
    yield from _number(name, value, bound)


def _number(name: str, value: float, bound: float) -> Iterator[_Problem]:
    if not math.isfinite(value):
        yield RejectReason.NOT_FINITE, f"{name} is {value}; must be a finite number"
    elif value < 0:
        yield RejectReason.NEGATIVE, f"{name} is {value}; at least 0"
    elif value > bound:
        yield RejectReason.OUT_OF_RANGE, f"{name} is {value}; at most {bound:g}"
