"""How the console itself stands, in words: the broker, the newest snapshot's age, and how much of the past is held.

The first that holds:
    BROKER_LOST   what is shown was read before
    READING       the topics have not been read to their end yet
    NO_SNAPSHOT   there is none
    EXPIRED       the newest is past its validity
    STALE         the newest is older than LATE_PERIODS periods and LATE_MS
    HELD          the solver decided nothing, and says why
    LIVE          the newest is as new as it should be
"""

from dataclasses import dataclass
from enum import StrEnum

from headrace.schemas.weights import SnapshotCommit, SnapshotStatus

LATE_PERIODS = 3
LATE_MS = 2_000


class Liveness(StrEnum):
    """How far what is shown is to be believed."""

    BROKER_LOST = "BROKER_LOST"
    NO_SNAPSHOT = "NO_SNAPSHOT"
    READING = "READING"
    EXPIRED = "EXPIRED"
    STALE = "STALE"
    HELD = "HELD"
    LIVE = "LIVE"


@dataclass(frozen=True, slots=True)
class Link:
    """The follower's word: whether the broker answers, since when not and what it said; whether all was read once."""

    lost_since_ms: int | None = None
    said: str = ""
    caught_up: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """The console's own state; `sentence` says `liveness` in words. Null where there is no snapshot."""

    now_ms: int
    liveness: str
    sentence: str
    version: int | None
    tick_ms: int | None
    period_ms: int | None
    valid_until_ms: int | None
    oldest_version: int | None
    oldest_tick_ms: int | None
    versions_held: int
    versions_bound: int
    parts_held: int
    parts_bound: int


def liveness(link: Link, newest: SnapshotCommit | None, now_ms: int) -> tuple[Liveness, str]:
    """Give the word and the sentence."""
    if link.lost_since_ms is not None:
        ago = (now_ms - link.lost_since_ms) / 1000
        return Liveness.BROKER_LOST, f"Kafka has not answered for {ago:.0f} s: {link.said or 'no reason given'}"
    if newest is None:
        if not link.caught_up:
            return Liveness.READING, link.said or "Reading the topics"
        return Liveness.NO_SNAPSHOT, "There is no snapshot yet: does `headrace solver` run?"
    age_ms = now_ms - newest.tick_ms
    if not link.caught_up and age_ms > LATE_PERIODS * newest.period_ms + LATE_MS:
        return Liveness.READING, "Reading what was published before"
    if now_ms >= newest.valid_until_ms:
        return Liveness.EXPIRED, f"The newest snapshot is {age_ms / 1000:.0f} s old and past its validity"
    if age_ms > LATE_PERIODS * newest.period_ms + LATE_MS:
        return Liveness.STALE, f"No snapshot for {age_ms / 1000:.0f} s; one is due every {newest.period_ms / 1000:g} s"
    if newest.status is SnapshotStatus.HELD:
        return Liveness.HELD, newest.sentence
    return Liveness.LIVE, f"One snapshot every {newest.period_ms / 1000:g} s"
