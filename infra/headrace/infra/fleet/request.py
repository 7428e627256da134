"""One user request and what becomes of it: exactly one outcome, whatever engines it was tried on."""

from dataclasses import dataclass
from enum import StrEnum

from headrace.dataplane.decision import Decision


@dataclass(frozen=True, slots=True)
class Request:
    """What entered at a cluster, when, with which session key and length."""

    number: int
    cluster: str
    arrived_s: float
    session: bytes
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request sent to an engine: the round trip it drew, the engines that failed it before, and what was decided."""

    request: Request
    engine_id: str
    round_trip_s: float
    failed_before: tuple[str, ...] = ()
    decision: Decision | None = None


class Kind(StrEnum):
    """The three ways in which a request ends. REFUSED and FAILED always carry a reason."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"


class EngineRefusal(StrEnum):
    """Why an engine did not take a request, or did not finish it; the words the gateway sees."""

    CONNECTION_REFUSED = "CONNECTION_REFUSED"
    """Nothing listens: the engine is dead or restarting."""
    NO_READY_REPLICA = "NO_READY_REPLICA"
    """The engine's front end answers, and no replica is behind it."""
    QUEUE_FULL = "QUEUE_FULL"
    """Offered more than it serves for longer than its queue holds."""
    ENGINE_ERROR = "ENGINE_ERROR"
    """The engine answered with an error."""
    CONNECTION_LOST = "CONNECTION_LOST"
    """The engine died before the first token."""
    BROKEN_OFF = "BROKEN_OFF"
    """The engine died after the first token: the user has part of an answer, so nothing may be retried."""


RETRYABLE = frozenset(EngineRefusal) - {EngineRefusal.BROKEN_OFF}


@dataclass(frozen=True, slots=True)
class Ended:
    """How one request ended.

    `latency_s` is what its user waited for the whole answer, `decision` the one that led to it; None unless answered.
    """

    kind: Kind
    reason: str
    engine_id: str | None
    latency_s: float | None
    ttft_s: float | None
    attempts: int
    decision: Decision | None = None
