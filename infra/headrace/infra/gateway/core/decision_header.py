"""The header that tells a client what was decided, without telling it where anything is.

    x-headrace-decision: version="3.41", engine="engine-b", outcome=ROUTED, reason=SLOT, attempt=1

A dictionary of RFC 8941 (structured fields). `version` is epoch.version of the weights, absent where none decided;
`engine` is an alias, absent where there is none. `headrace explain-request` reads it back.
"""

import re
from dataclasses import dataclass
from typing import Final

import xxhash

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.schemas.errors import InvalidInputError

NAME: Final = "x-headrace-decision"
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")
_LOOKS_LIKE_HOST: Final = re.compile(r".*\.[A-Za-z0-9-]+\..*|[0-9.]+|localhost")
_MEMBER: Final = re.compile(r'\s*([a-z]+)=(?:"([^"]*)"|([^",\s]+))\s*')


@dataclass(frozen=True, slots=True)
class DecisionHeader:
    """The header's content."""

    outcome: Outcome
    reason: DecisionReason
    engine: str | None
    epoch: int | None
    version: int | None
    attempt: int


def engine_alias(engine_id: str, configured: str | None = None) -> str:
    """Give the name an engine goes by outside: the configured one, else its id where that is a plain name.

    An id that could be a host name or an address (two dots, a port, a path) is shown by its hash instead; the hash
    is stable, so whoever knows the ids can find the engine.
    """
    if configured is not None:
        return configured
    if _ALIAS.fullmatch(engine_id) and not _LOOKS_LIKE_HOST.fullmatch(engine_id):
        return engine_id
    return f"engine-{xxhash.xxh3_64_hexdigest(engine_id.encode())[:12]}"


def decision_header(decision: Decision, alias: str | None, attempt: int) -> str:
    """Give the header's value."""
    parts: list[str] = []
    if decision.epoch is not None and decision.version is not None:
        parts.append(f'version="{decision.epoch}.{decision.version}"')
    if alias is not None:
        parts.append(f'engine="{alias}"')
    parts += [f"outcome={decision.outcome.value}", f"reason={decision.reason.value}", f"attempt={attempt}"]
    return ", ".join(parts)


def parse_decision_header(value: str) -> DecisionHeader:
    """Read the header back.

    Raises:
        InvalidInputError: it is not of this form.
    """
    found: dict[str, str] = {}
    for part in value.split(","):
        member = _MEMBER.fullmatch(part)
        if member is None:
            raise InvalidInputError(NAME, (f"{part.strip()[:60]!r} is no name=value",))
        found[member[1]] = member[2] if member[2] is not None else member[3]
    try:
        epoch, version = (int(n) for n in found["version"].split(".")) if "version" in found else (None, None)
        outcome, reason = Outcome(found["outcome"]), DecisionReason(found["reason"])
        return DecisionHeader(outcome, reason, found.get("engine"), epoch, version, int(found.get("attempt", "1")))
    except (KeyError, ValueError) as error:
        raise InvalidInputError(NAME, (f"{value[:120]!r}: {type(error).__name__}: {error}",)) from error
