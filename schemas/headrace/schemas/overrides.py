"""What operators say for a while: records of their own on the `fleet` topic, beside the engines they are about.

    key  `!drain|engine_id`, `!freeze|fleet`,     `!` is outside the identifier alphabet: no engine can collide with it
         `!pin|engine_id|cluster`

A tombstone takes an override back; past `expires_ms` it counts for nothing. It stands apart from EngineSpec so that
whoever publishes the fleet anew takes back nobody's word by it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from headrace.schemas.ids import SEPARATOR, identifier_problem
from headrace.schemas.weights import PPM

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
    PIN = "PIN"


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's word, with author, reason and expiry. `target` is an engine, or WHOLE_FLEET for a freeze.

    A pin is of what `cluster` sends the engine: at least `least_ppm` and at most `most_ppm` of each of its routes that
    the engine may serve. They are None for the other kinds.
    """

    kind: OverrideKind
    target: str
    author: str
    reason: str
    made_ms: int
    expires_ms: int
    cluster: str | None = None
    least_ppm: int | None = None
    most_ppm: int | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: `!kind|target`, of a pin `!pin|target|cluster`."""
        return override_key(self.kind, self.target, self.cluster)

    @property
    def share_words(self) -> str:
        """What a pin holds its share to: `exactly 20 %`, `at least 5 %`, `at most 30 %`, `5 to 30 %`."""
        least, most = self.least_ppm or 0, PPM if self.most_ppm is None else self.most_ppm
        if least == most:
            return f"exactly {_percent(least)} %"
        if most == PPM:
            return f"at least {_percent(least)} %"
        return f"at most {_percent(most)} %" if least == 0 else f"{_percent(least)} to {_percent(most)} %"

    @property
    def words(self) -> str:
        """Who, until when and why: `by ann until 2026-01-02 03:04:05 UTC: driver upgrade`."""
        until = datetime.fromtimestamp(self.expires_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"by {self.author} until {until}: {self.reason}"

    def holds(self, now_ms: int) -> bool:
        """Say whether it counts at an instant."""
        return self.made_ms <= now_ms < self.expires_ms


def override_key(kind: OverrideKind, target: str, cluster: str | None = None) -> bytes:
    """Give the Kafka key of an override; `cluster` is a pin's."""
    return SEPARATOR.join((f"!{kind.lower()}", target, *(() if cluster is None else (cluster,)))).encode()


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
    problems.extend(_pin_problems(override))
    return tuple(problem for problem in problems if problem is not None)


def _pin_problems(override: Override) -> list[str | None]:
    if override.kind is not OverrideKind.PIN:
        return []
    least, most = override.least_ppm, override.most_ppm
    problems = ["cluster is null; a pin is of what a cluster sends"] if override.cluster is None else []
    if least is None or most is None or not 0 <= least <= most <= PPM:
        found = f"least_ppm is {_share(least)} and most_ppm {_share(most)}"
        problems.append(f"{found}; 0 % <= least <= most <= 100 %")
    return [*problems, None if override.cluster is None else identifier_problem("cluster", override.cluster)]


def _share(ppm: int | None) -> str:
    return "null" if ppm is None else f"{_percent(ppm)} %"


def _percent(ppm: int) -> str:
    return f"{100 * ppm / PPM:g}"
