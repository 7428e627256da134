"""What operators say for a while: records of their own on the `fleet` topic, beside the engines they are about.

    key  `!drain|engine_id`, `!freeze|fleet`      `!` is outside the identifier alphabet: no engine can collide with it

A tombstone takes an override back; past `expires_ms` it counts for nothing. It stands apart from EngineSpec so that
whoever publishes the fleet anew takes back nobody's word by it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from headrace.schemas.ids import SEPARATOR, identifier_problem

OVERRIDE_MARK = b"!"
"""How the key of an override begins."""
WHOLE_FLEET = "fleet"
MAX_REASON = 300
MAX_AUTHOR = 100


class OverrideKind(StrEnum):
    """What an override does."""

    UNKNOWN = "UNKNOWN"
    DRAIN = "DRAIN"
    FREEZE = "FREEZE"


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's word, with author, reason and expiry. `target` is an engine, or WHOLE_FLEET for a freeze."""

    kind: OverrideKind
    target: str
    author: str
    reason: str
    made_ms: int
    expires_ms: int

    @property
    def key(self) -> bytes:
        """Kafka key: `!kind|target`."""
        return override_key(self.kind, self.target)

    @property
    def words(self) -> str:
        """Who, until when and why: `by ann until 2026-01-02 03:04:05 UTC: driver upgrade`."""
        until = datetime.fromtimestamp(self.expires_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"by {self.author} until {until}: {self.reason}"

    def holds(self, now_ms: int) -> bool:
        """Say whether it counts at an instant."""
        return self.made_ms <= now_ms < self.expires_ms


def override_key(kind: OverrideKind, target: str) -> bytes:
    """Give the Kafka key of an override."""
    return f"!{kind.lower()}{SEPARATOR}{target}".encode()


def is_override_key(key: bytes | None) -> bool:
    """Say whether a record of the fleet topic is an override."""
    return key is not None and key.startswith(OVERRIDE_MARK)


def check_override(override: Override) -> tuple[str, ...]:
    """Give every problem of an override as a sentence; () where it is sound."""
    problems = [identifier_problem("target", override.target)]
    for name, text, most in (("author", override.author, MAX_AUTHOR), ("reason", override.reason, MAX_REASON)):
        if not text.strip() or len(text) > most or not text.isprintable():
            problems.append(f"{name} is {text[:60]!r}; 1 to {most} printable characters")
    if override.kind is OverrideKind.UNKNOWN:
        problems.append("kind is UNKNOWN; this build does not know what it does")
    if override.expires_ms <= override.made_ms:
        problems.append(f"expires_ms is {override.expires_ms}; after made_ms, {override.made_ms}")
    return tuple(problem for problem in problems if problem is not None)
