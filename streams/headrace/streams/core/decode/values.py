"""Text and loose JSON values -> numbers, instants, labels, histograms that can be trusted; else a Refusal."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

import orjson

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.streams.core.decode.contract import (
    MAX_BUCKETS,
    MAX_COUNT,
    MAX_LABEL_CHARS,
    MAX_LABELS,
    MAX_SERIES_CHARS,
    MAX_TIME_MS,
    Explicit,
    Labels,
    Refusal,
)

INFINITY = math.inf


def json_value(payload: bytes | None) -> object:
    """Give what a message's JSON says.

    Raises:
        Refusal: it is no JSON; a message without a value is none.
    """
    try:
        return orjson.loads(payload or b"")
    except orjson.JSONDecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no JSON: {error}") from None


def number(value: object, name: str) -> float:
    """Give a JSON number, or the number that a text spells; NaN and infinities pass, for the caller to judge.

    Raises:
        Refusal: it is none; a bool is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.80}; expected a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.80}; expected a number") from None


def scalar(value: object, name: str) -> float | None:
    """Give a finite number, or None for NaN: no recorded value.

    Raises:
        Refusal: it is no number, or infinite.
    """
    found = number(value, name)
    if math.isnan(found):
        return None
    if math.isinf(found):
        raise Refusal(RejectReason.NOT_FINITE, f"{name} is {found}; must be a finite number")
    return found


def count(value: object, name: str) -> int:
    """Give a number of observations: whole, 0 to MAX_COUNT.

    Raises:
        Refusal: it is not.
    """
    if type(value) is int:
        found = value
    else:
        loose = number(value, name)
        if not math.isfinite(loose):
            raise Refusal(RejectReason.NOT_FINITE, f"{name} is {loose}; must be a finite number")
        found = int(loose)
        if found != loose:
            raise Refusal(RejectReason.INCONSISTENT, f"{name} is {loose}; expected a whole number")
    if not 0 <= found <= MAX_COUNT:
        reason = RejectReason.NEGATIVE if found < 0 else RejectReason.OUT_OF_RANGE
        raise Refusal(reason, f"{name} is {found}; 0 to {MAX_COUNT}")
    return found


def instant(value: float, name: str) -> int:
    """Give milliseconds of an instant in s, ms, us or ns since the epoch, told apart by magnitude.

    Below 1e11 it is seconds (until the year 5138), below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds.

    Raises:
        Refusal: it is not finite, below 0, or beyond the year 9999.
    """
    if not math.isfinite(value) or value < 0:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"{name} is {value}; expected an instant since the epoch")
    if value < 1e11:
        found = int(value * 1000) if isinstance(value, int) else round(value * 1000)
    elif value < 1e14:
        found = int(value)
    elif value < 1e17:
        found = int(value) // 1000
    else:
        found = int(value) // 1_000_000
    return in_range(found, name)


def in_range(time_ms: int, name: str) -> int:
    """Give the instant itself.

    Raises:
        Refusal: it is below 0 or beyond the year 9999.
    """
    if not 0 <= time_ms <= MAX_TIME_MS:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"{name} is {time_ms} ms; 0 to {MAX_TIME_MS}")
    return time_ms


def rfc3339(text: str, name: str) -> int:
    """Give milliseconds of an RFC 3339 instant; without a zone it is UTC.

    Raises:
        Refusal: it is no such text.
    """
    try:
        found = datetime.fromisoformat(text[:64])
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        seconds = int(found.replace(microsecond=0).timestamp())
    except (ValueError, OverflowError, OSError):
        raise Refusal(RejectReason.MALFORMED, f"{name} is {text[:60]!r}; expected an RFC 3339 instant") from None
    return in_range(seconds * 1000 + found.microsecond // 1000, name)


def labels(pairs: Iterable[tuple[str, str]]) -> Labels:
    """Give sorted labels; of a name that stands twice the last one counts.

    Raises:
        Refusal: they are more, or longer, than a series may have.
    """
    found = dict(pairs)
    if len(found) > MAX_LABELS:
        raise Refusal(RejectReason.TOO_LARGE, f"a series has {len(found)} labels; at most {MAX_LABELS}")
    whole = 0
    for name, value in found.items():
        whole += len(name) + len(value)
        if len(name) + len(value) > MAX_LABEL_CHARS:
            detail = f"label {name[:40]!r} has {len(name) + len(value)} characters; at most {MAX_LABEL_CHARS}"
            raise Refusal(RejectReason.TOO_LARGE, detail)
    if whole > MAX_SERIES_CHARS:
        raise Refusal(RejectReason.TOO_LARGE, f"labels of a series have {whole} characters; at most {MAX_SERIES_CHARS}")
    return tuple(sorted(found.items()))


def json_labels(found: object, name: str) -> dict[str, str]:
    """Give a JSON object of labels; numbers and booleans as JSON spells them, null and nested values left out.

    Raises:
        Refusal: it is no object.
    """
    result: dict[str, str] = {}
    for key, value in mapping(found, name).items():
        if isinstance(value, str):
            result[key] = value
        elif isinstance(value, bool):
            result[key] = "true" if value else "false"
        elif isinstance(value, int | float):
            result[key] = str(value)
    return result


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """Give a JSON object.

    Raises:
        Refusal: it is something else.
    """
    if not isinstance(value, dict):
        raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.60}; expected an object")
    return cast("dict[str, Any]", value)


def sequence(value: object, name: str) -> Sequence[Any]:
    """Give a JSON array.

    Raises:
        Refusal: it is something else.
    """
    if not isinstance(value, list):
        raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.60}; expected an array")
    return cast("list[Any]", value)


def as_list(value: object) -> list[object]:
    """Give a JSON array's items, or the one value that is no array."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def text(value: object, name: str) -> str:
    """Give a JSON string that is not empty.

    Raises:
        Refusal: it is something else.
    """
    if not isinstance(value, str) or not value:
        raise Refusal(RejectReason.MALFORMED, f"{name} is {value!r:.60}; expected a text")
    return value


def explicit(
    bounds: Sequence[float],
    counts: Sequence[int],
    total_count: int,
    total: float | None,
    extremes: tuple[float | None, float | None] = (None, None),
) -> Explicit:
    """Give a histogram from per-bucket counts, one more than the bounds.

    A histogram without observations has the sum 0, whether or not it was recorded.

    Raises:
        Refusal: the bounds do not rise, the counts do not fit them or do not add up to the count, or a number is
            not finite.
    """
    if len(bounds) >= MAX_BUCKETS:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"a histogram has {len(bounds)} bounds; at most {MAX_BUCKETS - 1}")
    bounds = tuple(bounds)
    problem = _bounds_problem(bounds)
    if problem is not None:
        raise Refusal(problem.reason, problem.detail)
    if len(counts) != len(bounds) + 1:
        raise Refusal(RejectReason.INCONSISTENT, f"a histogram has {len(counts)} counts for {len(bounds)} bounds")
    if sum(counts) != total_count:
        raise Refusal(RejectReason.INCONSISTENT, f"bucket counts add up to {sum(counts)}; the count is {total_count}")
    if total_count > MAX_COUNT or min(counts) < 0:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"bucket counts are {min(counts)} to {total_count}; 0 to {MAX_COUNT}")
    if total is not None and not math.isfinite(total):
        total = None
    if total is None and total_count == 0:
        total = 0.0
    low, high = extremes
    low = None if low is None or not math.isfinite(low) else low
    high = None if high is None or not math.isfinite(high) else high
    return Explicit(bounds, tuple(counts), total_count, total, low, high)


@lru_cache(maxsize=512)
def _bounds_problem(bounds: tuple[float, ...]) -> Rejected | None:
    """Give what is wrong with a histogram's bounds; a source's are few, and come with every scrape."""
    last = -INFINITY
    for bound in bounds:
        if not last < bound < INFINITY:
            detail = f"a histogram's bounds do not rise: {bound} follows {last}"
            return Rejected(RejectReason.INCONSISTENT, detail)
        last = bound
    return None


def from_cumulative(buckets: Mapping[float, int], total_count: int | None, total: float | None) -> Explicit:
    """Give a histogram from counts at or below each bound, as Prometheus writes them; +Inf may stand for the count.

    Raises:
        Refusal: the counts fall with rising bounds, or the count is neither given nor at +Inf, or they differ.
    """
    at_infinity = buckets.get(INFINITY)
    if total_count is None:
        total_count = at_infinity
    if total_count is None:
        raise Refusal(RejectReason.INCONSISTENT, "a histogram has neither a count nor a bucket +Inf")
    if at_infinity is not None and at_infinity != total_count:
        raise Refusal(RejectReason.INCONSISTENT, f"the bucket +Inf is {at_infinity}; the count is {total_count}")
    bounds = sorted(bound for bound in buckets if bound != INFINITY)
    counts: list[int] = []
    below = 0
    for bound in bounds:
        if buckets[bound] < below:
            raise Refusal(
                RejectReason.INCONSISTENT, f"the cumulative bucket {bound:g} is {buckets[bound]}, below {below}"
            )
        counts.append(buckets[bound] - below)
        below = buckets[bound]
    if below > total_count:
        raise Refusal(RejectReason.INCONSISTENT, f"buckets hold {below}; the count is {total_count}")
    return explicit(bounds, [*counts, total_count - below], total_count, total)
