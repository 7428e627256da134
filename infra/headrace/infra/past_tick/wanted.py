"""Which tick is meant: the newest, a version (`812`), an age (`5m`) or an instant (`2026-01-02T03:04:05Z`)."""

from dataclasses import dataclass

from headrace.infra.weights_tail.since import parse_since
from headrace.schemas.weights import SnapshotCommit


@dataclass(frozen=True, slots=True)
class Wanted:
    """A version, or the last tick at or before an instant, or the newest where both are None."""

    version: int | None = None
    at_ms: int | None = None
    text: str = "now"

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
        InvalidInputError: it is neither a version nor an age nor an instant.
    """
    if text is None:
        return Wanted()
    since = parse_since(text, now_ms, command, option="--at")
    if since.version:
        return Wanted(version=since.version, text=f"version {text}")
    return Wanted(at_ms=since.at_ms, text=text)
