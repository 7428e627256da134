"""Operators' overrides: none has run out unnoticed, is about to, lasts for ever, or is of an unknown engine."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, note, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration, quoted
from headrace.schemas.overrides import Override, OverrideKind

FOLLOWS_FROM = ("brokers", "snapshot")

SOON_MS = 10 * 60_000
SOON_SHARE = 0.25
"""Of a short one, the last quarter is soon: nobody is to be told of what has just been said."""
DAY_MS = 86_400_000


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each override of an engine that needs a word. A freeze is judged by `freeze`."""
    if picture.view is None:
        return
    for _, override in sorted(picture.view.overrides.items()):
        if override.kind is OverrideKind.FREEZE:
            continue
        yield from judged(override, now_ms, again(override))
        if override.target.encode() not in picture.view.specs:
            yield warning(
                override.target,
                f"{named(override)} {override.words} is of an engine that the fleet does not have",
                "it does nothing; it will, should such an engine come",
                take_back(override),
            )


def judged(override: Override, now_ms: int, longer: str) -> Iterator[Finding]:
    """Give what is to be said of any override's end."""
    left_ms = override.expires_ms - now_ms
    # The commands that say one take no more.
    soon_ms = min(SOON_MS, round(SOON_SHARE * (override.expires_ms - override.made_ms)))
    longest_ms = DAY_MS if override.kind is OverrideKind.FREEZE else 30 * DAY_MS
    if left_ms <= 0:
        yield note(
            override.target,
            f"{named(override)} {override.words} ran out {duration(-left_ms)} ago",
            "it counts for nothing any more: traffic is back where it would be without it",
            take_back(override),
            value=left_ms,
            bound=0,
        )
    elif left_ms > longest_ms:
        yield warning(
            override.target,
            f"{named(override)} {override.words} lasts another {duration(left_ms)}; at most {duration(longest_ms)}",
            "whoever said it will not remember; nothing else ends it",
            take_back(override),
            value=left_ms,
            bound=longest_ms,
        )
    elif left_ms < soon_ms:
        yield warning(
            override.target,
            f"{named(override)} {override.words} runs out in {duration(left_ms)}; told from {duration(soon_ms)} on",
            "traffic comes back then, whether or not the work is done; to go on:",
            longer,
            value=left_ms,
            bound=soon_ms,
        )


def named(override: Override) -> str:
    """Give what it is and of what: `drain of engine-b`, `pin of what tokyo sends engine-b`."""
    whose = "" if override.cluster is None else f"what {override.cluster} sends "
    return f"{override.kind.lower()} of {whose}{override.target}"


def again(override: Override) -> str:
    """Give the command that says the same for longer."""
    words = [f"headrace {override.kind.lower()}", *_of(override)]
    if override.kind is OverrideKind.PIN:
        words.append(f"--least {override.least_ppm}ppm --most {override.most_ppm}ppm")
    return f"{' '.join(words)} --reason {quoted(override.reason)} --for 2h"


def take_back(override: Override) -> str:
    """Give the command that takes it back."""
    return " ".join([f"headrace un{override.kind.lower()}", *_of(override)])


def _of(override: Override) -> list[str]:
    """Give whose weights it is about, as the commands take it; nothing for all of them."""
    if override.kind is OverrideKind.FREEZE:
        return []
    return [name for name in (override.cluster, override.target) if name is not None]
