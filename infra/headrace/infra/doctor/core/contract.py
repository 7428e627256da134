"""What a check says: a finding with its severity, what it is, what it means, and the commands that mend it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is. A note alone leaves a system healthy."""

    FAULT = "FAULT"
    """Something does not work, or a promise is broken, now."""
    WARNING = "WARNING"
    """It works, and will not under some circumstance that comes."""
    NOTE = "NOTE"
    """Worth knowing; nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `sentence` has the value, the bound and the name; `mend` the commands, in their order.

    `value` and `bound` are what was compared, in words, None where there is no such thing. `follows_from` names a check
    whose own fault probably explains this one; `check` is the check's name, which its runner fills in.
    """

    severity: Severity
    subject: str
    sentence: str
    meaning: str
    mend: tuple[str, ...]
    value: str | None = None
    bound: str | None = None
    check: str = ""
    follows_from: str | None = None


def fault(subject: str, sentence: str, meaning: str, *mend: str, value: object = None, bound: object = None) -> Finding:
    """Give a finding of something that does not work."""
    return Finding(Severity.FAULT, subject, sentence, meaning, mend, _text(value), _text(bound))


def warning(
    subject: str, sentence: str, meaning: str, *mend: str, value: object = None, bound: object = None
) -> Finding:
    """Give a finding of something that will not work."""
    return Finding(Severity.WARNING, subject, sentence, meaning, mend, _text(value), _text(bound))


def note(subject: str, sentence: str, meaning: str, *mend: str, value: object = None, bound: object = None) -> Finding:
    """Give a finding of something worth knowing."""
    return Finding(Severity.NOTE, subject, sentence, meaning, mend, _text(value), _text(bound))


def _text(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)
