"""Records of every carrier (values invented), and the front half in one call: decode, put together, map, difference."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Vantage
from headrace.streams.core.decode.contract import (
    Decoded,
    DecodeOptions,
    Explicit,
    Exponential,
    Kind,
    Point,
    Temporality,
)
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.decode.families import Pending, assemble, finish
from headrace.streams.core.differencing.book import BookOutcome, SeriesBook
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.mapping.apply import Mapped, map_points
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.mapping.reading import Field, Identity, Over, Reading, TbotKind

SAMPLES = Path(__file__).parent / "samples"
T0 = 1_787_400_000_000
"""Instant of the first scrape of the samples; the next follow every 15 s."""
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ENGINE = "10.0.3.23:8000"

VLLM_FILES = {
    "otel_kafka_otlp_json": "otlp_json",
    "otel_kafka_otlp_proto": "otlp_proto",
    "prometheus_kafka_adapter_json": "prom_adapter",
    "telegraf_influx_v1": "influx",
    "telegraf_influx_v2": "influx",
    "telegraf_json": "telegraf_json",
    "vector_json": "vector_json",
}
"""Files that hold the same scrapes of one vLLM engine, and their carriers."""


def records(name: str) -> tuple[RawRecord, ...]:
    """Give the records of a sample file."""
    found: list[RawRecord] = []
    for line in (SAMPLES / f"{name}.kafka.jsonl").read_text().splitlines():
        row = json.loads(line)
        key, value = (None if row[k] is None else base64.b64decode(row[k]) for k in ("key_b64", "value_b64"))
        headers = tuple((name, base64.b64decode(text)) for name, text in row["headers"])
        found.append(RawRecord(row["topic"], row["partition"], row["offset"], row["timestamp_ms"], key, value, headers))
    return tuple(found)


def scrapes() -> tuple[RawRecord, ...]:
    """Give the four scrapes of the vLLM V1 engine as exposition text; the last is after a restart."""
    files = sorted((SAMPLES / "prom").glob("vllm_v1_scrape_*.prom"))
    return tuple(text(file.read_text(), int(file.stem.partition("_t")[2]), i) for i, file in enumerate(files))


def text(value: str | bytes, timestamp_ms: int = T0, offset: int = 0, key: bytes | None = None) -> RawRecord:
    """Give a record with this value."""
    return RawRecord("t", 0, offset, timestamp_ms, key, value.encode() if isinstance(value, str) else value)


def read(carrier: str, value: str | bytes, timestamp_ms: int = T0) -> Decoded:
    """Decode one value."""
    return decode(text(value, timestamp_ms), DecodeOptions(carrier))


def reasons(decoded: Decoded) -> list[RejectReason]:
    """Give why parts of a message were refused, in order."""
    return [each.reason for each in decoded.rejects]


def vllm_mapping() -> TelemetryMapping:
    """Give the preset, for text that names no instance."""
    return parse_mapping(f"preset: vllm_v1\nlabels: {{instance: '{ENGINE}'}}")


def points(carrier: str, found: Iterable[RawRecord], families: frozenset[str]) -> list[Point]:
    """Decode records and put histograms together."""
    pending, whole = Pending(), list[Point]()
    for record in found:
        whole += assemble(pending, decode(record, DecodeOptions(carrier)).points, families).points
    return whole + list(finish(pending).points)


def mapped(carrier: str, found: Iterable[RawRecord], mapping: TelemetryMapping | None = None) -> Mapped:
    """Decode and map."""
    mapping = load_preset("vllm_v1") if mapping is None else mapping
    return map_points(points(carrier, found, mapping.families), mapping)


def histogram_points(carrier: str, found: Iterable[RawRecord], name: str) -> list[Point]:
    """Give the points of one distribution, in time order."""
    named = [p for p in points(carrier, found, frozenset([name])) if p.name == name]
    return sorted(named, key=lambda p: p.time_ms)


@dataclass
class Folded:
    """What a book said of readings, in their order."""

    book: SeriesBook = field(default_factory=SeriesBook)
    outcomes: list[tuple[Reading, BookOutcome]] = field(default_factory=list)

    def take(self, readings: Iterable[Reading]) -> "Folded":
        """Fold readings."""
        self.outcomes += [(reading, self.book.take(reading)) for reading in readings]
        return self

    def deltas(self, wanted: Field = Field.TTFT) -> list[Delta]:
        """Give the differences of one field."""
        return [o for reading, o in self.outcomes if isinstance(o, Delta) and reading.field is wanted]


def explicit(*counts: int, total: float, bounds: tuple[float, ...] = (0.1, 0.2, 0.4)) -> Explicit:
    """Give a histogram over 0.1, 0.2, 0.4 s and beyond."""
    return Explicit(bounds, counts, sum(counts), total)


READING = Reading(
    identity=Identity("e1", "m1", "i1", "0", "", ""),
    field=Field.TTFT,
    series=1,
    slot=1,
    alias=0,
    temporality=Temporality.CUMULATIVE,
    time_ms=0,
    start_ms=None,
    value=None,
    histogram=None,
    vantage=Vantage.ENGINE,
    over_ranks=Over.SUM,
    over_instances=Over.SUM,
    tbot_kind=TbotKind.UNKNOWN,
    name="ttft",
    place=0,
)


def reading(
    time_ms: int, what: Explicit | Exponential | float | None = None, start_ms: int | None = None, **changes: object
) -> Reading:
    """Give a reading of TTFT of engine e1; a number makes it one of a counter."""
    histogram = what if isinstance(what, Explicit | Exponential) else None
    value = what if isinstance(what, float | int) else None
    base = READING._replace(time_ms=time_ms, start_ms=start_ms, histogram=histogram, value=value)
    if value is not None:
        base = base._replace(field=Field.ARRIVALS)
    return base._replace(**changes)


def point(name: str, value: float | None = None, histogram: Explicit | None = None, **labels: str) -> Point:
    """Give a point at T0."""
    kind = Kind.HISTOGRAM if histogram is not None else Kind.GAUGE
    temporality = Temporality.CUMULATIVE if histogram is not None else Temporality.INSTANT
    return Point(name, tuple(sorted(labels.items())), kind, temporality, T0, None, value, histogram, "", 0)
