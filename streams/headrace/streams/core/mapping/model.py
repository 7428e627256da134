"""A mapping as a frozen value: what a checked YAML document says, and its hash for each event's lineage."""

from dataclasses import dataclass, field
from enum import StrEnum

import jmespath.parser

from headrace.schemas.signals import Vantage
from headrace.streams.core.mapping.reading import DURATIONS, Field, Over, TbotKind
from headrace.streams.core.mapping.templates import Template
from headrace.streams.core.mapping.units import Unit

IDENTITIES = ("engine", "model", "instance", "rank", "cluster", "class")


class Unmapped(StrEnum):
    """What becomes of an identity that its value map does not name."""

    KEEP = "keep"
    REJECT = "reject"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Path:
    """A JMESPath into a document. Compared by its text."""

    text: str
    compiled: jmespath.parser.ParsedResult = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Alias:
    """One name that a field goes by; `match` are labels and the values they may have, "" where one may be absent."""

    name: str
    unit: Unit
    match: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tbot_kind: TbotKind = TbotKind.UNKNOWN


@dataclass(frozen=True, slots=True)
class HistogramPaths:
    """Where in a document a histogram's parts are; without bounds only count and sum are known."""

    count: Path
    total: Path
    bounds: Path | None
    counts: Path | None


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Where one field comes from: names of series, in order of preference, or a place in a document."""

    field: Field
    required: bool
    over_ranks: Over
    over_instances: Over
    aliases: tuple[Alias, ...] = ()
    path: Path | None = None
    histogram: HistogramPaths | None = None
    each: int | None = None
    unit: Unit = Unit.ONE
    tbot_kind: TbotKind = TbotKind.UNKNOWN


@dataclass(frozen=True, slots=True)
class IdentityRule:
    """How one identity is found, and which names it then gets."""

    templates: tuple[Template, ...]
    values: tuple[tuple[str, str], ...] = ()
    unmapped: Unmapped = Unmapped.KEEP


@dataclass(frozen=True, slots=True)
class DocumentRules:
    """How documents are read: where their time is, and which of their fields templates may name."""

    labels: tuple[tuple[str, Path], ...]
    time: Path | None
    start: Path | None


@dataclass(frozen=True, slots=True)
class TelemetryMapping:
    """What one topic's telemetry means. `hash` is of its content: two files that say the same have the same.

    `python` names the one way out where YAML does not reach, `package.module:function`; whoever maps loads it and lets
    it turn a message's points into others before they are mapped (`mapping.apply.Rewrite`).
    """

    name: str
    hash: str
    carrier: str | None
    vantage: Vantage
    where: Path | None
    labels: tuple[tuple[str, str], ...]
    drop_labels: frozenset[str]
    identities: tuple[tuple[str, IdentityRule], ...]
    rules: tuple[FieldRule, ...]
    document: DocumentRules | None
    max_series: int
    python: str | None = None

    @property
    def wanted(self) -> frozenset[str]:
        """Names of the series that any rule asks for: what a decoder need not skip."""
        return frozenset(alias.name for rule in self.rules for alias in rule.aliases)

    @property
    def families(self) -> frozenset[str]:
        """Names of those that are distributions: what `decode.families` puts together from samples."""
        return frozenset(a.name for rule in self.rules if rule.field in DURATIONS for a in rule.aliases)
