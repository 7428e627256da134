"""A request trace: when requests came, how long they were, and which of them belong to one session."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.schemas.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MAX_PROBLEMS = 10


@dataclass(frozen=True, slots=True, eq=False)
class RequestTrace:
    """Requests in the order in which they came.

    Attributes:
        name: of the format.
        source: in a few words, for the report.
        t_s: (N,) seconds since the first one, never falling.
        input_tokens, output_tokens: (N,), at least 1.
        sessions: (N,) a number per session; None where the trace tells none.
    """

    name: str
    source: str
    t_s: Floats
    input_tokens: Floats
    output_tokens: Floats
    sessions: Ints | None

    @property
    def rate_rps(self) -> float:
        """Mean rate, requests per second."""
        return len(self.t_s) / max(float(self.t_s[-1]), 1e-9)

    @property
    def length_s(self) -> float:
        """From the first request to the last."""
        return float(self.t_s[-1])


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request as a reader finds it; `session` is any text that its session's requests share, or None."""

    at_s: float
    input_tokens: float
    output_tokens: float
    session: str | None = None


def trace_of(name: str, source: str, requests: Sequence[TraceRequest]) -> RequestTrace:
    """Make a trace of requests in any order; what fails (no output token) counts as one token.

    Raises:
        InvalidInputError: there are fewer than two, or all came at once.
    """
    ordered = sorted(requests, key=lambda request: request.at_s)
    if len(ordered) < 2 or ordered[-1].at_s <= ordered[0].at_s:
        raise InvalidInputError(source, (f"holds {len(ordered)} requests; at least two at different times are needed",))
    numbers: dict[str, int] = {}
    sessions = [-1 if r.session is None else numbers.setdefault(r.session, len(numbers)) for r in ordered]
    return RequestTrace(
        name=name,
        source=source,
        t_s=np.array([r.at_s - ordered[0].at_s for r in ordered]),
        input_tokens=np.maximum(1.0, np.array([r.input_tokens for r in ordered])),
        output_tokens=np.maximum(1.0, np.array([r.output_tokens for r in ordered])),
        sessions=np.array(sessions, dtype=np.int64) if numbers else None,
    )
