"""Readings written by hand against Avro's generic writer: the same bytes, whatever a reading holds."""

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1 import metrics_pb2

from headrace.schemas.avro_schemas import schema
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.series import SeriesPart
from headrace.schemas.signals import Demand, EngineSignals, Vantage
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import EngineTarget, RouteTarget, Target, Translated
from headrace.streams.core.canonical.wire import ReadingWriter, long
from headrace.streams.core.decode import otlp_wire
from headrace.streams.core.decode.contract import Explicit, Exponential, Temporality
from headrace.streams.core.held import held_of
from headrace.streams.core.lineage import Place
from headrace.streams.core.mapping.reading import Field, Identity, Over, Reading, TbotKind

LONGS = st.one_of(st.integers(0, 20_000), st.integers(0, (1 << 63) - 1))
FLOATS = st.floats(allow_nan=False)
MAYBE = st.one_of(st.none(), FLOATS)
NAMES = st.text(max_size=20)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def explicits(draw: st.DrawFn) -> Explicit:
    bounds = tuple(draw(st.lists(FLOATS, max_size=6)))
    counts = tuple(draw(st.lists(LONGS, min_size=len(bounds) + 1, max_size=len(bounds) + 1)))
    return Explicit(bounds, counts, draw(LONGS) if bounds else counts[0], draw(MAYBE), draw(MAYBE), draw(MAYBE))


EXPONENTIALS = st.builds(
    Exponential, INT32, LONGS, INT32, st.lists(LONGS, max_size=6).map(tuple), LONGS, MAYBE, MAYBE, MAYBE
)
READINGS = st.builds(
    Reading,
    identity=st.builds(Identity, st.just("e"), NAMES, NAMES, NAMES, st.just(""), st.just("")),
    field=st.sampled_from(Field),
    series=st.integers(0, (1 << 63) - 1),
    slot=st.integers(0, (1 << 63) - 1),
    alias=st.integers(0, 9),
    temporality=st.sampled_from(Temporality),
    time_ms=LONGS,
    start_ms=st.one_of(st.none(), LONGS),
    value=MAYBE,
    histogram=st.one_of(st.none(), explicits(), EXPONENTIALS),
    vantage=st.just(Vantage.ENGINE),
    over_ranks=st.sampled_from(Over),
    over_instances=st.sampled_from(Over),
    tbot_kind=st.sampled_from(TbotKind),
    name=st.just(""),
    place=st.just(0),
)
TARGETS: st.SearchStrategy[Target] = st.one_of(
    st.builds(EngineTarget, st.just("engine-1"), st.sampled_from([Vantage.ENGINE, Vantage.GATEWAY])),
    st.just(RouteTarget("c", "m", "default")),
)


@given(
    st.lists(st.tuples(READINGS, st.sampled_from([p for p in SeriesPart if p is not SeriesPart.UNKNOWN])), min_size=1),
    TARGETS,
    st.integers(0, 1 << 40),
    st.booleans(),
)
def test_a_signal_is_what_the_generic_writer_would_write_and_says_what_was_read(
    found: list[tuple[Reading, SeriesPart]],
    target: Target,
    offset: int,
    has_lineage: bool,  # noqa: FBT001 - an example's
) -> None:
    # Every series is itself, as in a mapping: what a series begins with is written once.
    whole = [(reading._replace(series=i), part) for i, (reading, part) in enumerate(found)]
    writer, packs = ReadingWriter(), Packs("topic", 3, "hash", "bridge", has_lineage=has_lineage)
    for again in range(2):
        told = tuple((target, writer.write(r, part, offset, i)) for i, (r, part) in enumerate(whole))
        packs.add(Translated(told))
        del again
    (packed,) = packs.take()
    signal = must(decode(packed.kind, packed.value))
    assert isinstance(signal, EngineSignals | Demand)
    assert encode(signal) == packed.value
    out = io.BytesIO()
    body = packed.value[10:]
    source = io.BytesIO(body)
    avro = schema(packed.kind.__name__)
    plain = fastavro.schemaless_reader(source, avro, None)
    fastavro.schemaless_writer(out, avro, plain)
    assert (out.getvalue(), source.read()) == (body, b"")
    assert signal.key == packed.key
    assert (signal.lineage is not None) is has_lineage
    assert signal.period_start_ms == signal.period_end_ms == max(r.time_ms for r, _ in whole)
    assert signal.series is not None
    for i, read in enumerate(signal.series):
        reading, part = whole[i % len(whole)]
        expected = reading._replace(identity=reading.identity._replace(engine="e"))
        held = held_of(read, reading.identity, Place("topic", 3, offset, i % len(whole)))
        assert held is not None
        assert (read.offset, read.index) == (offset, i % len(whole))
        if isinstance(reading.histogram, Explicit) and not reading.histogram.bounds:
            # Count and sum alone: the one count is the number of observations.
            expected = expected._replace(histogram=reading.histogram._replace(counts=(reading.histogram.observations,)))
        assert held == (expected, part, Place("topic", 3, offset, i % len(whole)))


@given(st.one_of(st.integers(-70_000, 70_000), st.integers(-(1 << 63), (1 << 63) - 1)))
def test_a_long_is_written_as_avro_says(number: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    assert long(number) == out.getvalue()


@pytest.mark.parametrize("name", sorted(otlp_wire.MESSAGES))
def test_the_messages_of_otlp_are_declared_as_their_own_declaration_says(name: str) -> None:
    theirs = (
        metrics_pb2.ExponentialHistogramDataPoint.Buckets if name == "Buckets" else getattr(metrics_pb2, name)
    ).DESCRIPTOR
    ours = otlp_wire.MetricsData.DESCRIPTOR.file.message_types_by_name[name]
    assert len(ours.fields) == len(otlp_wire.MESSAGES[name])
    for field in ours.fields:
        their = theirs.fields_by_number[field.number]
        assert (field.name, field.is_repeated) == (their.name, their.is_repeated)
        assert field.has_presence == their.has_presence or field.name == "resource"
        if field.type == field.TYPE_BYTES:
            # A message inside another is bytes on the wire.
            assert their.type == their.TYPE_MESSAGE
        elif field.name == "aggregation_temporality":
            assert their.type == their.TYPE_ENUM
        else:
            assert field.type == their.type
        if field.containing_oneof is not None and not field.containing_oneof.name.startswith("_"):
            assert their.containing_oneof is not None
            assert their.containing_oneof.name == field.containing_oneof.name
    left_out = {each.name for each in theirs.fields} - {each.name for each in ours.fields}
    assert left_out <= {
        "exemplars",
        "description",
        "metadata",
        "schema_url",
        "scope",
        "zero_threshold",
        "quantile_values",
    }
