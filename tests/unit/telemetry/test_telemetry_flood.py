"""A label made from user input: 50,000 distinct values through everything that remembers something by label or series.

What is held is counted, not weighed; tests/bench/flood_bridge.py does the same with a million, and weighs.
"""

from collections.abc import Iterator

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from headrace.schemas.codec import decode, must
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals
from headrace.streams.bridge.tally import MAX_COUNTED, Tally
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translated, Translator
from headrace.streams.core.canonical.wire import MAX_HEADS
from headrace.streams.core.decode import otlp_proto
from headrace.streams.core.decode.contract import DecodeOptions, Kind, Point, Temporality
from headrace.streams.core.decode.families import MAX_PENDING, Pending, assemble
from headrace.streams.core.differencing.book import DEFAULT_MAX_SERIES
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.ledger import MAX_HELD
from headrace.streams.core.mapping.apply import MAX_KNOWN, Mapper
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.recent import Recent
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0, text

VALUES, A_MESSAGE = 50_000, 1_000
OF_ENGINE = 15_000
VLLM = load_preset("vllm_v1")


def users(k: int) -> range:
    return range(k * A_MESSAGE, (k + 1) * A_MESSAGE)


def gauge(user: int, at_ms: int = T0) -> Point:
    labels = (("instance", "flooded"), ("model_name", "m"), ("user", f"user-{user}"))
    name = "vllm:num_requests_running"
    return Point(name, labels, Kind.GAUGE, Temporality.INSTANT, at_ms, None, 1.0, None, "", user)


def otlp(k: int) -> RawRecord:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="vllm:num_requests_running")
    for user in users(k):
        point = metric.gauge.data_points.add(time_unix_nano=(T0 + 250 * k) * 1_000_000, as_double=1.0)
        for name, value in (("instance", "flooded"), ("model_name", "m"), ("user", f"user-{user}")):
            point.attributes.add(key=name).value.string_value = value
    return text(data.SerializeToString(), T0 + 250 * k, k)


def translated(values: int = VALUES) -> Iterator[tuple[Translator, Translated]]:
    translator = Translator(parse_mapping("preset: vllm_v1\nlimits: {max_series: 1000}"), DecodeOptions("otlp_proto"))
    for k in range(values // A_MESSAGE):
        yield translator, translator.translate(otlp(k), T0 + 60_000)


def test_what_was_asked_for_lately_stays_through_a_flood_and_no_more_than_the_bound_is_held() -> None:
    recent: Recent[int, str] = Recent(100)
    recent.put(-1, "in use")
    for i in range(VALUES):
        recent.put(i, "new")
        if i % 40 == 0:
            assert recent.get(-1) == "in use"
        assert i % 1_000 or len(recent) <= 100
    assert recent.get(0) is None
    assert recent.get(VALUES - 1) == "new"


def test_weights_bound_what_is_remembered_too() -> None:
    recent: Recent[int, str] = Recent(1_000, 100)
    for i in range(1_000):
        recent.put(i, "v", 10)
    assert len(recent) == 10
    recent.put(5_000, "too heavy", 51)
    assert recent.get(5_000) is None


def test_the_mapping_remembers_a_bounded_number_of_label_sets() -> None:
    mapper = Mapper(VLLM)
    for k in range(VALUES // A_MESSAGE):
        mapper.map_points([gauge(user) for user in users(k)])
    assert MAX_KNOWN // 4 < len(mapper.known) <= MAX_KNOWN < VALUES


def test_the_protobuf_decoder_remembers_a_bounded_number_of_attribute_sets() -> None:
    for translator, found in translated():
        assert len(found.readings) == A_MESSAGE
        assert len(translator.writer.ends) <= MAX_HEADS
    assert len(otlp_proto.known_labels) <= otlp_proto.MAX_KNOWN < VALUES


def test_the_bridges_tally_counts_a_bounded_number_of_names_and_reasons() -> None:
    tally = Tally()
    for k in range(VALUES // A_MESSAGE):
        rejects = tuple(Rejected(RejectReason.BAD_IDENTIFIER, f"user-{user}") for user in users(k))
        names = {f"name-{user}": 1 for user in users(k)}
        tally.add(Translated(rejects=rejects, unmatched=names, folded={f"engine-{user}": 1 for user in users(k)}))
    for counts in (tally.rejects, tally.unmatched, tally.folded):
        assert len(counts) <= MAX_COUNTED + 1
        assert counts.total() == VALUES
    assert tally.is_alarming


def test_samples_that_wait_for_the_rest_of_their_histogram_are_bounded() -> None:
    pending = Pending()
    for k in range(VALUES // A_MESSAGE):
        samples = [gauge(user, T0 + k)._replace(name="ttft_bucket", kind=Kind.UNTYPED) for user in users(k)]
        samples = [s._replace(labels=(*s.labels[:1], ("le", "0.5"), *s.labels[1:])) for s in samples]
        assemble(pending, samples, frozenset(["ttft"]))
        assert pending.waiting <= MAX_PENDING
        assert len(pending.parts) + len(pending.last) <= 2 * MAX_PENDING


def test_an_engines_fold_holds_a_bounded_number_of_series_and_says_that_it_folded_the_rest() -> None:
    accumulator, sizes = EngineAccumulator("flooded", StreamsSettings()), list[int]()
    for _, found in translated(OF_ENGINE):
        packs = Packs("t", 0, "h", "bridge")
        packs.add(found)
        for packed in packs.take():
            signal = must(decode(EngineSignals, packed.value))
            accumulator.apply(signal, len(sizes), signal.period_end_ms)
            sizes.append(len(accumulator.state().series or b""))
    assert accumulator.ledger is not None
    book = accumulator.ledger.book
    assert len(accumulator.ledger.held) <= MAX_HELD
    assert len(book.levels) + len(book.gauges) <= DEFAULT_MAX_SERIES
    assert "SERIES_FOLDED" in accumulator.state().filled
    assert max(sizes[-3:]) <= max(sizes[8:12])
