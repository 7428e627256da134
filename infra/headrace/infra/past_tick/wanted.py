"""Which tick is meant: the newest, a version (`812`), an age (`5m`) or an instant (`2026-01-02T03:04:05Z`)."""

from dataclasses import dataclass
from datetime import UTC, datetime

from headrace.infra.weights_tail.since import parse_since
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import SnapshotCommit


@dataclass(frozen=True, slots=True)
class Wanted:
    """A version, or the last tick at or before an instant, or the newest where both are None."""

    version: int | None = None
    at_ms: int | None = None
    text: str = "now"

    @property
    def words(self) -> str:
        """What was asked for, an age or an instant with the time it comes to."""
        return self.text if self.at_ms is None else f"{self.text} ({at_words(self.at_ms)})"

    def is_past(self, commit: SnapshotCommit) -> bool:
        """Say whether a tick, and all after it, comes later than the one that is meant."""
        if self.version is not None:
            return commit.version > self.version
        return self.at_ms is not None and commit.tick_ms > self.at_ms

    def is_met(self, commit: SnapshotCommit) -> bool:
        """Say whether the last tick that is not past is the one that is meant."""
        return self.version in (None, commit.version)


def parse_wanted(text: str | None, now_ms: int, command: str) -> Wanted:
    """Read what `--at` says; None is the newest.

    Raises:
        InvalidInputError: it is neither a version nor an age nor an instant, or an instant that is still to come.
    """
    if text is None:
        return Wanted()
    since = parse_since(text, now_ms, command, option="--at")
    if since.version:
        return Wanted(version=since.version, text=f"version {text}")
    if since.at_ms > now_ms:
        problem = (
            f"--at is {text!r}, which is still to come: it is {at_words(now_ms)} now; leave --at out for the newest"
        )
        raise InvalidInputError(command, (problem,))
    return Wanted(at_ms=since.at_ms, text=text)


def at_words(time_ms: int) -> str:
    """Say an instant, UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def held_words(first: SnapshotCommit | None, last: SnapshotCommit | None) -> str:
    """Say from when to when history holds ticks."""
    if first is None or last is None:
        return "it holds no whole snapshot yet: does `headrace solver` run?"
    begin, end = (f"version {each.version} of {at_words(each.tick_ms)}" for each in (first, last))
    return f"it holds {begin} to {end}"
