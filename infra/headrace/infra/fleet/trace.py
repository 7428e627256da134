"""Arrivals of the Azure conversation trace at any mean rate: the real inter-arrivals and lengths, each divided.

    gap[i]    = inter-arrival[i] / local mean of 401 inter-arrivals around i   mean 1, CV 1.02: the trace's burstiness
    tokens[i] = mean x count[i] / local mean of 401 counts around i            the trace's spread of lengths
    next arrival = now + gap[i] / rate

Time is compressed, 16 times for 90 RPS, which would turn the trace's swings over minutes (+-25 % in rate, as much in
length) into surges over seconds that no trace ever had; hence the division by the local mean (401 requests are 72 s of
the trace, 4.5 s at 90 RPS). Swings faster than that stay as they were. The whole trace is a loop of 19,366 requests;
clusters start at different places of it. Lengths are scaled to the mean that the engines' capacity was measured with: a
capacity in requests per second means nothing at another length.

The trace has no sessions. A request opens a new one with probability 1/5, else continues one of its cluster's last 64.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from headrace.infra.fleet.tables import rows

LOCAL_HALF_WIDTH = 200
OPENS_SESSION = 0.2
RECENT_SESSIONS = 64


@dataclass(frozen=True, slots=True)
class Trace:
    """Inter-arrivals and token counts, all normalised to mean 1; one entry per request of the loop."""

    gaps: NDArray[np.float64]
    inputs: NDArray[np.float64]
    outputs: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arrival:
    """The next request: how long after the one before at rate 1, its session, its length in tokens."""

    gap: float
    session: str
    input_tokens: int
    output_tokens: int


@cache
def azure_conversation() -> Trace:
    """Give the trace that ships, divided by its local means."""
    table = rows("azure_llm_2023_conv")
    times = np.array([float(row["t_s"]) for row in table])
    mean = times[-1] / (len(times) - 1)
    gaps = np.diff(times, append=times[-1] + mean)
    return Trace(
        gaps=normalised(gaps, LOCAL_HALF_WIDTH),
        inputs=normalised(np.array([float(row["input_tokens"]) for row in table]), LOCAL_HALF_WIDTH),
        outputs=normalised(np.array([float(row["output_tokens"]) for row in table]), LOCAL_HALF_WIDTH),
    )


def normalised(values: NDArray[np.float64], half_width: int) -> NDArray[np.float64]:
    """Divide each value by the mean of the 2 x half_width + 1 around it (the ends meet), then bring the mean to 1."""
    ring = np.concatenate([values[-half_width:], values, values[:half_width]])
    local = np.convolve(ring, np.full(2 * half_width + 1, 1.0 / (2 * half_width + 1)), "valid")
    out = values / local
    return np.asarray(out / out.mean(), dtype=np.float64)


def arrivals(trace: Trace, name: str, start: float, tokens: tuple[float, float], rng: Generator) -> Iterator[Arrival]:
    """Give the endless arrivals of one cluster.

    Args:
        trace: the loop.
        name: put before the session numbers, so that no two clusters share a session.
        start: where on the loop to begin, 0..1.
        tokens: mean (input, output) tokens to scale to; each request has at least one of both.
        rng: draws which session a request belongs to.
    """
    count = len(trace.gaps)
    gaps = trace.gaps.tolist()
    inputs = _scaled(trace.inputs, tokens[0])
    outputs = _scaled(trace.outputs, tokens[1])
    i = int(start * count) % count
    opened = 0
    while True:
        draws = rng.random((count, 2)).tolist()
        for opens, which in draws:
            if opened == 0 or opens < OPENS_SESSION:
                opened += 1
                session = opened
            else:
                session = opened - int(which * min(opened, RECENT_SESSIONS))
            yield Arrival(gaps[i], f"{name}-{session}", inputs[i], outputs[i])
            i = (i + 1) % count


def _scaled(shape: NDArray[np.float64], mean: float) -> list[int]:
    scaled: list[int] = np.maximum(1, np.rint(shape * mean)).astype(np.int64).tolist()
    return scaled
