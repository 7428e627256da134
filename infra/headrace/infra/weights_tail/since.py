"""Where a tail begins: a version (`812`), an age (`5m`) or an instant (`2026-01-02T03:04:05Z`, UTC unless it says)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import SnapshotCommit

_AGE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Since:
    """The first snapshot to show: of at least this version, made at or after this instant; both 0 = any."""

    text: str
    version: int = 0
    at_ms: int = 0

    def takes(self, commit: SnapshotCommit) -> bool:
        """Say whether a snapshot is to be shown."""
        return commit.version >= self.version and commit.tick_ms >= self.at_ms


def parse_since(
    text: str, now_ms: int, command: str = "tail", *, option: str = "--since", versions: bool = True
) -> Since:
    """Read a version (where a command knows `versions`), an age before `now_ms`, or an ISO 8601 instant.

    Raises:
        InvalidInputError: it is none of them.
    """
    if versions and text.isascii() and text.isdigit():
        return Since(text, version=int(text))
    age = _AGE.fullmatch(text)
    if age is not None:
        return Since(text, at_ms=now_ms - round(float(age[1]) * _UNIT_MS[age[2]]))
    try:
        # "20260102" is a date to ISO 8601, and a slip of the pen to whoever meant a version.
        instant = datetime.fromisoformat("" if text.isdigit() else text)
    except ValueError:
        version = "a version (812), " if versions else ""
        problem = f"{option} is {text!r}; expected {version}an age (30s, 5m, 2h, 1d) or an ISO 8601 instant"
        raise InvalidInputError(command, (problem,)) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return Since(text, at_ms=round(instant.timestamp() * 1000))
