"""How old the weights are, and what that means for routing.

    tick ───── fresh_periods x period ───── valid_until ─────►
         FRESH                       FROZEN              FALLBACK

Age never refuses a request by itself. FRESH and FROZEN route alike; FROZEN says that the solver is not heard from, and
widens what the data plane's own guards may leave out.
Every commit, even one that changes no weight, starts the line anew. The instants are the solver's and `now_ms` is the
data plane's: their clocks' difference shifts the line by as much.
"""

from enum import StrEnum

from headrace.schemas.weights import SnapshotCommit


class Staleness(StrEnum):
    """ABSENT: no snapshot yet. FRESH: as it should be. FROZEN: last weights stand. FALLBACK: past its time to live."""

    ABSENT = "ABSENT"
    FRESH = "FRESH"
    FROZEN = "FROZEN"
    FALLBACK = "FALLBACK"


def fresh_until_ms(commit: SnapshotCommit, fresh_periods: int) -> int:
    """Give the first instant at which a commit is no longer FRESH."""
    return min(commit.tick_ms + fresh_periods * commit.period_ms + 1, commit.valid_until_ms)


def staleness(commit: SnapshotCommit | None, now_ms: int, fresh_periods: int) -> Staleness:
    """Judge a commit by its age. A commit from the future, by a clock that is ahead, is FRESH."""
    if commit is None:
        return Staleness.ABSENT
    if now_ms >= commit.valid_until_ms:
        return Staleness.FALLBACK
    return Staleness.FRESH if now_ms < fresh_until_ms(commit, fresh_periods) else Staleness.FROZEN
