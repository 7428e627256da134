"""The header that tells a client what was decided, without telling it where anything is.

    x-headrace-decision: version="3.41", engine="engine-b", outcome=ROUTED, reason=SLOT, attempt=1

A dictionary of RFC 8941 (structured fields). `version` is epoch.version of the weights, absent where none decided;
`engine` is an alias, absent where there is none. `headrace explain-request` reads it back.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, TypeVar

import xxhash

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.schemas.errors import InvalidInputError

NAME: Final = "x-headrace-decision"
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")
_LOOKS_LIKE_HOST: Final = re.compile(r".*\.[A-Za-z0-9-]+\..*|[0-9.]+|localhost")
_VERSION: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_MEMBER: Final = re.compile(r'\s*([a-z]+)=(?:"([^"]*)"|([^",\s]+))\s*')

E = TypeVar("E", bound=StrEnum)


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
    parts += [f"outcome={decision.outcome}", f"reason={decision.reason}", f"attempt={attempt}"]
    return ", ".join(parts)


def parse_decision_header(value: str) -> DecisionHeader:
    """Read the header back; its name may stand before it, as a client prints it.

    Raises:
        InvalidInputError: it is not of this form; with everything that is wrong.
    """
    if not value.strip():
        raise InvalidInputError(NAME, ("it is empty",))
    problems: list[str] = []
    found: dict[str, str] = {}
    name, colon, rest = value.partition(":")
    for part in (rest if colon and name.strip().lower() == NAME else value).split(","):
        member = _MEMBER.fullmatch(part)
        if member is None:
            problems.append(f"{part.strip()[:60]!r} is no name=value")
        elif member[1] in found:
            problems.append(f"{member[1]} is given twice")
        else:
            found[member[1]] = member[2] if member[2] is not None else member[3]
    outcome = _one_of(Outcome, found, "outcome", problems)
    reason = _one_of(DecisionReason, found, "reason", problems)
    version = _VERSION.fullmatch(found.get("version", "0.0"))
    attempt = found.get("attempt", "1")
    if version is None:
        problems.append(f"version is {found['version'][:60]!r}; expected epoch.version, such as 3.41")
    if not _COUNT.fullmatch(attempt):
        problems.append(f"attempt is {attempt[:60]!r}; expected a number from 1 on")
    if problems or outcome is None or reason is None or version is None:
        raise InvalidInputError(NAME, tuple(problems))
    epoch, number = (int(version[1]), int(version[2])) if "version" in found else (None, None)
    return DecisionHeader(outcome, reason, found.get("engine"), epoch, number, int(attempt))


def _one_of(kind: type[E], found: Mapping[str, str], name: str, problems: list[str]) -> E | None:
    value = found.get(name)
    members = [member.value for member in kind]
    if value in members:
        return kind(value)
    if value is None:
        problems.append(f"{name} is missing; one of {', '.join(members)}")
    else:
        near = get_close_matches(value, members, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(members)}"
        problems.append(f"{name} is {value[:60]!r}; {hint}")
    return None
