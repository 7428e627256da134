"""What both OTLP forms share once their fields are read: instants, temporality, exponential buckets, label values.

Source: OpenTelemetry protocol, metrics v1; metrics data model, "Exponential Histogram" and "Temporality".
"""

from collections.abc import Sequence

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode.contract import MAX_BUCKETS, MAX_COUNT, MAX_TIME_MS, Exponential, Refusal, Temporality

NO_RECORDED_VALUE = 1
"""Bit of a data point's flags: its fields are empty, and that is not zero."""

TEMPORALITY = {1: Temporality.DELTA, 2: Temporality.CUMULATIVE}
_MIN_SCALE, _MAX_SCALE = -10, 20


def instant_ms(nanoseconds: int, otherwise_ms: int) -> int:
    """Give a point's time; 0 is "not set", and the message's own time stands in.

    Raises:
        Refusal: it lies beyond the year 9999.
    """
    if nanoseconds == 0:
        return otherwise_ms
    found = nanoseconds // 1_000_000
    if not 0 < found <= MAX_TIME_MS:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"timeUnixNano is {nanoseconds}; at most {MAX_TIME_MS} ms")
    return found


def start_ms(nanoseconds: int, time_ms: int) -> int | None:
    """Give a point's start; None where it is not set, or lies after the point itself."""
    found = nanoseconds // 1_000_000
    return found if 0 < found <= time_ms else None


def temporality(number: int, name: str) -> Temporality:
    """Give the temporality of a sum or histogram.

    Raises:
        Refusal: it is not set: whether the values add up cannot be guessed.
    """
    found = TEMPORALITY.get(number)
    if found is None:
        raise Refusal(RejectReason.INCONSISTENT, f"{name[:80]}: aggregationTemporality is {number}; 1 or 2")
    return found


def exponential(
    scale: int,
    zero_count: int,
    positive: tuple[int, Sequence[int]],
    negative: Sequence[int],
    whole: tuple[int, float | None, float | None, float | None],
) -> Exponential:
    """Give an exponential histogram; `positive` is (offset, counts), `whole` is (count, sum, min, max).

    Raises:
        Refusal: scale or offset is out of range, there are too many buckets, or they do not add up to the count.
    """
    offset, counts = positive
    total_count, total, low, high = whole
    if not _MIN_SCALE <= scale <= _MAX_SCALE or abs(offset) > 2**31:
        raise Refusal(
            RejectReason.OUT_OF_RANGE, f"scale is {scale}, offset {offset}; scale {_MIN_SCALE} to {_MAX_SCALE}"
        )
    if len(counts) > MAX_BUCKETS or len(negative) > MAX_BUCKETS:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"{len(counts) + len(negative)} buckets; at most {MAX_BUCKETS} a side")
    zeros = zero_count + sum(negative)
    if zeros + sum(counts) != total_count:
        raise Refusal(
            RejectReason.INCONSISTENT, f"bucket counts add up to {zeros + sum(counts)}; the count is {total_count}"
        )
    if min(counts, default=0) < 0 or min(negative, default=0) < 0 or zero_count < 0 or total_count > MAX_COUNT:
        raise Refusal(RejectReason.OUT_OF_RANGE, f"bucket counts below 0, or a count {total_count} above {MAX_COUNT}")
    if total is None and total_count == 0:
        total = 0.0
    return Exponential(scale, zeros, offset, tuple(counts), total_count, total, low, high)
