"""Labels -> who a series is of: templates filled, value maps applied, identifiers checked; else a reject with why."""

from collections.abc import Mapping
from typing import Any

import jmespath.exceptions

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.ids import identifier_problem
from headrace.streams.core.mapping.model import IdentityRule, Path, TelemetryMapping, Unmapped
from headrace.streams.core.mapping.reading import Identity
from headrace.streams.core.mapping.templates import Origin

OTHER = "other"
Found = Any
"""What a JMESPath finds: any JSON value, None where nothing."""

_REQUIRED = ("engine", "model")
_MAX_SHOWN = 12


class Resolver:
    """The identity rules of a mapping, ready to be asked."""

    def __init__(self, mapping: TelemetryMapping) -> None:
        self._static = dict(mapping.labels)
        self._where = mapping.where
        self._rules = [(name, rule, dict(rule.values)) for name, rule in mapping.identities]
        self.asks_record = any(t.asks_record for _, rule in mapping.identities for t in rule.templates)
        """Whether an identity depends on more than labels, so that nothing may be remembered by label set."""

    def passes(self, document: Mapping[str, Any]) -> bool | Rejected:
        """Say whether `where` lets a document pass; one that gives no boolean is a mistake that is told."""
        if self._where is None:
            return True
        found = search(self._where, document)
        if isinstance(found, bool):
            return found
        detail = f"where {self._where.text!r} gave {found!r:.60}; expected true or false"
        return Rejected(RejectReason.INCONSISTENT, detail[:300])

    def identity(self, labels: Mapping[str, str], origin: Origin) -> Identity | Rejected:
        """Give who these labels name; the mapping's own labels stand in where the series has none of that name."""
        known = {**self._static, **labels} if self._static else labels
        found: list[str] = []
        for name, rule, values in self._rules:
            value = _fill(rule, known, origin)
            if value is None:
                if name in _REQUIRED:
                    return _unresolved(name, rule, known)
                found.append("")
                continue
            mapped = values.get(value)
            if mapped is None:
                if rule.unmapped is Unmapped.REJECT:
                    detail = f"{name} is {value!r:.80}; values.{name} does not name it, and unmapped is reject"
                    return Rejected(RejectReason.BAD_IDENTIFIER, detail)
                mapped = OTHER if rule.unmapped is Unmapped.OTHER else value
            problem = identifier_problem(name, mapped)
            if problem is not None:
                return Rejected(RejectReason.BAD_IDENTIFIER, problem)
            found.append(mapped)
        return Identity(*found)


def search(path: Path, document: object) -> Found:
    """Give what a JMESPath finds; None also where it asks of a value what that value has not."""
    try:
        return path.compiled.search(document)
    except (jmespath.exceptions.JMESPathError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None


def _fill(rule: IdentityRule, labels: Mapping[str, str], origin: Origin) -> str | None:
    for template in rule.templates:
        value = template.fill(labels, origin)
        if value is not None:
            return value
    return None


def _unresolved(name: str, rule: IdentityRule, labels: Mapping[str, str]) -> Rejected:
    tried = ", ".join(repr(template.text) for template in rule.templates)
    shown = ", ".join(sorted(labels)[:_MAX_SHOWN]) or "none"
    detail = f"{name} cannot be told: none of {tried} can be filled; labels are {shown}; write identity.{name}"
    return Rejected(RejectReason.BAD_IDENTIFIER, detail[:300])
