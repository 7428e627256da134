"""How a simulated engine behaves: how fast, how much, and what goes wrong. Pure.

Pace is a function of the requests in service: constant, or a measured curve's (`headrace.infra.fleet.curves`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headrace.infra.fleet.curves import ReplicaCurve

Pace = Callable[[int], tuple[float, float]]
"""(TTFT, TBOT) in seconds, by the number of requests in service."""


class Fault(StrEnum):
    """What an engine does instead of serving."""

    NONE = "NONE"
    CLOSE_BEFORE_HEAD = "CLOSE_BEFORE_HEAD"
    """Closes the connection without a word."""
    CLOSE_BEFORE_BODY = "CLOSE_BEFORE_BODY"
    """Sends status 200 and headers, then closes."""
    CLOSE_MID_STREAM = "CLOSE_MID_STREAM"
    """Closes after `break_after` tokens, between two events."""
    CLOSE_MID_EVENT = "CLOSE_MID_EVENT"
    """Closes after `break_after` tokens, inside an event."""
    ERROR_MID_STREAM = "ERROR_MID_STREAM"
    """Sends an error event after `break_after` tokens, then ends its stream properly."""
    HANG_BEFORE_HEAD = "HANG_BEFORE_HEAD"
    """Never answers."""
    HANG_MID_STREAM = "HANG_MID_STREAM"
    """Sends nothing more after `break_after` tokens, and keeps the connection."""
    NOT_HTTP = "NOT_HTTP"
    """Answers with bytes that are no HTTP."""
    STATUS_429 = "STATUS_429"
    STATUS_500 = "STATUS_500"
    STATUS_503 = "STATUS_503"

    @property
    def status(self) -> int | None:
        """The error status that stands for this fault; None where it is not of that kind."""
        return int(self.value[7:]) if self.value.startswith("STATUS_") else None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What an engine does from now on.

    Attributes:
        pace: how fast.
        tokens: generated per answer, unless the request's max_tokens is less.
        word: each token's text.
        fault: what goes wrong.
        break_after: tokens before a fault in mid-stream.
        every: the fault meets every n-th request, the others are served.
    """

    pace: Pace
    tokens: int = 16
    word: str = "word "
    fault: Fault = Fault.NONE
    break_after: int = 3
    every: int = 1


def constant(ttft_s: float = 0.0, tbot_s: float = 0.0) -> Pace:
    """Give the pace of an engine that load does not slow."""
    return lambda _: (ttft_s, tbot_s)


def measured(curve: ReplicaCurve) -> Pace:
    """Give the pace of a measured curve."""
    return lambda in_service: curve.at(float(in_service))
