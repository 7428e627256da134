"""The fold of readings: what is told as it goes is what is told from bytes, and says what a time between tokens is."""

from collections.abc import Sequence

import pytest

from collector import batch, engine_id
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import TbotKind
from headrace.schemas.signals import EngineSignals, Metric
from headrace.schemas.state import EngineState
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.engine import EngineAccumulator, fold_engine
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0, text

SETTINGS = StreamsSettings()


def scraped(period_ms: int, many: int = 12) -> list[EngineSignals]:
    translator, found = Translator(load_preset("vllm_v1"), DecodeOptions("otlp_proto")), list[EngineSignals]()
    for i in range(many):
        at_ms = T0 + period_ms * i
        found += of(translator, RawRecord("t", 0, i, at_ms, None, batch(1, i, at_ms)))
    return found


def of(translator: Translator, record: RawRecord) -> list[EngineSignals]:
    packs = Packs("t", 0, "h", "bridge")
    packs.add(translator.translate(record, record.timestamp_ms))
    return [must(decode(EngineSignals, packed.value)) for packed in packs.take()]


def each_state(signals: Sequence[EngineSignals]) -> list[bytes]:
    accumulator, found = EngineAccumulator(engine_id(0), SETTINGS), list[bytes]()
    for offset, signal in enumerate(signals):
        accumulator.apply(signal, offset, signal.period_end_ms)
        found.append(encode(accumulator.state()))
    return found


@pytest.mark.parametrize("period_ms", [500, 1_000, 15_000])
@pytest.mark.parametrize("order", ["in order", "two swapped", "one late"])
def test_what_is_kept_from_state_to_state_changes_no_byte_of_any(period_ms: int, order: str) -> None:
    signals = scraped(period_ms)
    if order == "two swapped":
        signals[5], signals[6] = signals[6], signals[5]
    if order == "one late":
        signals.insert(9, signals.pop(3))
    singly, state = list[bytes](), None
    for offset, signal in enumerate(signals):
        # From bytes to bytes: nothing is kept.
        state = fold_engine(state, signal, offset, signal.period_end_ms, SETTINGS)
        singly.append(encode(state))
        state = must(decode(EngineState, singly[-1]))
    assert each_state(signals) == singly


def test_a_difference_is_taken_once_whether_it_is_told_or_final(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.streams.core import engine

    spread = engine.distribution
    made = list[Metric]()

    def counted(model: str, metric: Metric, histogram: object) -> object:
        made.append(metric)
        return spread(model, metric, histogram)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "distribution", counted)
    signals = scraped(1_000, many=9)
    each_state(signals)
    # Of the names of a time between tokens, the preferred one speaks.
    assert len(made) == 8 * len((Metric.TTFT, Metric.TBOT, Metric.E2E, Metric.QUEUE))


def kind_of(metrics: str, mapping: str = "preset: vllm_v1") -> TbotKind | None:
    accumulator, translator = (
        EngineAccumulator("e", SETTINGS),
        Translator(parse_mapping(mapping), DecodeOptions("prom_text")),
    )
    for k in (1, 2):
        value = metrics.replace("COUNT", str(10 * k)).replace("SUM", str(k))
        for signal in of(translator, text(value, T0 + 1_000 * k, k)):
            accumulator.apply(signal, k, T0 + 1_000 * k)
    state = must(decode(EngineState, encode(accumulator.state())))
    resumed = EngineAccumulator.resume(state, SETTINGS).state()
    assert resumed == state
    (found,) = (latency for latency in state.latencies if latency.metric is Metric.TBOT)
    return found.tbot_kind


def summary(name: str) -> str:
    lines = (f'{name}_sum{{instance="e",model_name="m"}} SUM', f'{name}_count{{instance="e",model_name="m"}} COUNT')
    return "\n".join((f"# TYPE {name} summary", *lines, ""))


def test_a_state_says_what_one_observation_of_its_time_between_tokens_is() -> None:
    assert kind_of(summary("vllm:request_time_per_output_token_seconds")) is TbotKind.REQUEST_MEAN
    assert kind_of(summary("vllm:inter_token_latency_seconds")) is TbotKind.PER_OUTPUT
    plain = "identity: {engine: ['{instance}'], model: ['{model_name}']}\nfields: {tbot: {names: [{name: t, unit: s}]}}"
    assert kind_of(summary("t"), plain) is None
