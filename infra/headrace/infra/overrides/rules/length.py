"""made + 1 minute <= expires <= made + the longest of its kind: what has no end is forgotten.

While all is frozen nothing follows demand, so a freeze ends within a day; a drain or a pin may last for 30.
"""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override, OverrideKind

FORCEABLE = False
SHORTEST_MS = 60_000
DAY_MS = 86_400_000
LONGEST_DAYS = {OverrideKind.FREEZE: 1}
USUAL_DAYS = 30


def broken(stands: Stands, override: Override) -> str | None:  # noqa: ARG001 - a rule's signature
    """Hold it against the bounds of its kind."""
    days, for_ms = LONGEST_DAYS.get(override.kind, USUAL_DAYS), override.expires_ms - override.made_ms
    if SHORTEST_MS <= for_ms <= days * DAY_MS:
        return None
    return f"--for is {_words(for_ms)}; 1 minute to {days} day{'' if days == 1 else 's'}"


def _words(ms: int) -> str:
    """Give a length as one reads it: `31 days`, `1 day 1 hour`, `10 s`."""
    said: list[str] = []
    left_ms = ms
    for unit, one in (("day", DAY_MS), ("hour", 3_600_000), ("minute", SHORTEST_MS)):
        count, left_ms = divmod(left_ms, one) if left_ms > 0 else (0, left_ms)
        if count:
            said.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(said) if said else f"{ms / 1000:g} s"
