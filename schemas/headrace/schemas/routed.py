"""Single requests that a data plane routed: a sample by session, for whoever asks what another policy would have done.

A session is in it with all its requests, or not at all. Of its key there is only the hash of 64 bits by which slot
tables place it: without it nobody could say where other weights would have sent it. Whoever knows a key finds its hash.

Instants are integer milliseconds since the epoch, durations are seconds. null is "not measured".
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from headrace.schemas.ids import RouteKey, identifier_problem

MAX_REQUESTS = 10_000
"""Requests of one record, at most: 1 to 2 MB."""
MAX_S = 1e6
_POINTS = 1 << 64


class RoutedOutcome(StrEnum):
    """What became of a request at its engine."""

    UNKNOWN = "UNKNOWN"
    OK = "OK"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class RoutedRequest:
    """One attempt at one engine.

    Attributes:
        sent_ms: when it was sent there.
        session: the session's hash as a signed number; None for a request that belongs to none.
        engine_id: where it went.
        reason: by which step it got there.
        retry: whether another engine had been tried before.
        epoch, version: of the weights that decided; None where none did.
        propensity: with what probability a session gets this engine, 0..1, over the sessions' hashes.
        outcome: what became of it.
        ttft_s, e2e_s: first token, and end, after it was sent.
    """

    sent_ms: int
    session: int | None
    engine_id: str
    reason: str
    retry: bool
    epoch: int | None
    version: int | None
    propensity: float | None
    outcome: RoutedOutcome
    ttft_s: float | None
    e2e_s: float | None

    @property
    def point(self) -> int | None:
        """Where the session stands on the circle of 64 bits; None where there is none."""
        return None if self.session is None else self.session % _POINTS


@dataclass(frozen=True, slots=True)
class RoutedRequests:
    """Sampled requests of one route that ended at one data plane in one period, in the order of their ends.

    `share` of the sessions are sampled, 0..1.
    """

    cluster: str
    model: str
    request_class: str
    source: str
    period_end_ms: int
    share: float
    requests: tuple[RoutedRequest, ...]

    @property
    def route(self) -> RouteKey:
        """What they asked for, and where they came in."""
        return RouteKey(self.cluster, self.model, self.request_class)

    @property
    def key(self) -> bytes:
        """Kafka key: `cluster|model|class`."""
        return self.route.encode()


def signed(point: int) -> int:
    """Give a point of the circle of 64 bits as Avro's `long` holds it."""
    return point - _POINTS if point >= _POINTS >> 1 else point


def check_routed(record: RoutedRequests) -> tuple[str, ...]:
    """Give every problem of a record as a sentence; () where it is sound."""
    names = {"cluster": record.cluster, "model": record.model, "request_class": record.request_class}
    problems = [identifier_problem(name, value) for name, value in {**names, "source": record.source}.items()]
    if not 0.0 < record.share <= 1.0:
        problems.append(f"share is {record.share}; above 0, at most 1")
    if len(record.requests) > MAX_REQUESTS:
        problems.append(f"requests are {len(record.requests)}; at most {MAX_REQUESTS}")
    for number, request in enumerate(record.requests):
        problems += [f"requests[{number}].{problem}" for problem in _problems(request)]
    return tuple(problem for problem in problems if problem is not None)


def _problems(request: RoutedRequest) -> Iterator[str]:
    problem = identifier_problem("engine_id", request.engine_id)
    if problem is not None:
        yield problem
    if request.sent_ms < 0:
        yield f"sent_ms is {request.sent_ms}; at least 0"
    if request.propensity is not None and not 0.0 <= request.propensity <= 1.0:
        yield f"propensity is {request.propensity}; 0 to 1"
    for name, seconds in (("ttft_s", request.ttft_s), ("e2e_s", request.e2e_s)):
        if seconds is not None and not (math.isfinite(seconds) and 0.0 <= seconds < MAX_S):
            yield f"{name} is {seconds}; 0 to {MAX_S:g} s"
