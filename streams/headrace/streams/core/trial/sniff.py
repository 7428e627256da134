"""Which carrier wrote these records, and which preset knows their names: told from what decodes and matches best."""

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Point
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.decode.families import Pending, assemble, families_in, finish
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset, preset_names

ORDER: Final = (
    "avro",
    "otlp_json",
    "vector_json",
    "telegraf_json",
    "prom_adapter",
    "otlp_proto",
    "prom_text",
    "influx",
    "json",
    "msgpack",
)
"""Where two carriers read the same records equally well, the first is named: strict ones before those that take all."""


class Sniffed(NamedTuple):
    """A carrier, what it decoded, and how many of the records it could use."""

    carrier: str
    decoded: tuple[Decoded, ...]
    usable: int


def sniff(records: Sequence[RawRecord]) -> Sniffed | None:
    """Give the carrier that reads most of the records; None where none reads even one."""
    best: Sniffed | None = None
    for carrier in ORDER:
        options = DecodeOptions(carrier)
        decoded = tuple(decode(record, options) for record in records)
        usable = sum(bool(each.points or each.documents or each.signals) for each in decoded)
        if usable and (best is None or usable > best.usable):
            best = Sniffed(carrier, decoded, usable)
    return best


def whole_points(decoded: Sequence[Decoded]) -> tuple[Point, ...]:
    """Give the points, histograms put together from samples where a carrier has samples alone."""
    points = [point for each in decoded for point in each.points]
    pending = Pending()
    assembled = assemble(pending, points, families_in(points))
    return (*assembled.points, *finish(pending).points)


def best_preset(points: Sequence[Point]) -> str | None:
    """Give the preset whose fields these points serve most; None where no preset knows one name."""
    return preset_of_names({point.name for point in points})


def preset_of_names(names: Set[str]) -> str | None:
    """Give the preset whose fields series of these names serve most; None where no preset knows one name."""
    scores: list[tuple[int, int, int, str]] = []
    # Of equals the last by name is the newest version of its engine.
    for preset in reversed(preset_names()):
        mapping = load_preset(preset)
        first_choice = sum(rule.aliases[0].name in names for rule in mapping.rules if rule.aliases)
        scores.append((fields_served(mapping, names), first_choice, len(mapping.wanted & names), preset))
    fields, *_, preset = max(scores, key=lambda score: score[:3])
    return preset if fields else None


def fields_served(mapping: TelemetryMapping, names: Set[str]) -> int:
    """Count the fields of a mapping that series of these names serve."""
    return sum(any(alias.name in names for alias in rule.aliases) for rule in mapping.rules)


def refusals(record: RawRecord) -> dict[str, str]:
    """Give what each carrier says of a record that none can read."""
    decoded = ((carrier, decode(record, DecodeOptions(carrier))) for carrier in ORDER)
    return {carrier: each.rejects[0].detail for carrier, each in decoded if each.rejects}
