"""Adaptive throttling: an engine that rejects is asked less, by as much as it rejects.

    fraction = max(0, (requests - k accepts) / (requests + 10)),   both counted with weight exp(-age / window)

`requests` counts what was sent, and what was not because every engine throttles; `accepts` what was sent and has not
been rejected: an engine says no at once and answers late, so what is under way counts as accepted. At k = 2 an engine
that takes half of what it is sent is left alone; one that takes nothing is soon asked by few sessions only, and these
are how its recovery is noticed. The 10 keeps single rejections from counting; the fading forgets. A session is kept
from the engine where the low 32 bits of its hash are below the fraction: always the same ones, more as it grows.
A clock that steps back stops the fading, by a window at most: past that the counts are dated anew.

Source: Site Reliability Engineering (2016), chapter 21, "Client-side throttling".
"""

import math
from dataclasses import dataclass
from typing import Final

from headrace.dataplane.guards.contract import AttemptOutcome

_PADDING: Final = 10
_MOST: Final = 0.98
"""Some sessions always ask, or a recovery would be noticed by its fading only."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests and accepts of one engine, faded to `at_ms`."""

    requests: float
    accepts: float
    at_ms: int


def faded(tally: Tally, now_ms: int, window_ms: int) -> Tally:
    """Give the counts at a later instant; an earlier one changes nothing."""
    if now_ms <= tally.at_ms:
        return tally
    kept = math.exp((tally.at_ms - now_ms) / window_ms)
    return Tally(tally.requests * kept, tally.accepts * kept, now_ms)


def counted(tally: Tally | None, outcome: AttemptOutcome | None, now_ms: int, window_ms: int) -> Tally:
    """Count one request by what became of it; None is one that was kept back here."""
    if tally is None:
        tally = Tally(0.0, 0.0, now_ms)
    elif now_ms > tally.at_ms:
        tally = faded(tally, now_ms, window_ms)
    elif now_ms < tally.at_ms - window_ms:
        tally = Tally(tally.requests, tally.accepts, now_ms)
    accepted = outcome is not None and outcome is not AttemptOutcome.REJECTED
    return Tally(tally.requests + 1, tally.accepts + accepted, tally.at_ms)


def taken_back(tally: Tally) -> Tally:
    """Give the counts after one request that was counted as accepted when it was sent turned out to be rejected."""
    return Tally(tally.requests, max(0.0, tally.accepts - 1), tally.at_ms)


def fraction(tally: Tally, now_ms: int, k: float, window_ms: int) -> float:
    """Give the share of sessions to keep from the engine, 0 .. 0.98."""
    now = faded(tally, now_ms, window_ms)
    return min(_MOST, max(0.0, (now.requests - k * now.accepts) / (now.requests + _PADDING)))
