"""How requests ended, as engines' own counters tell it: what of a preset counts as failed, and what as neither."""

import pytest

from headrace.schemas.codec import decode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals, Vantage
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0

VLLM = 'vllm:request_success_total{{model_name="m",instance="e",engine="0",finished_reason="{}"}}'
EXPOSED = {
    "vllm_v1": {VLLM.format(r): n for r, n in (("stop", 5), ("length", 3), ("abort", 7), ("error", 2), ("new", 9))},
    "ray_serve": {
        'ray_vllm:request_success_total{model_name="m",deployment="e",replica="r",finished_reason="stop"}': 8,
        'ray_vllm:request_success_total{model_name="m",deployment="e",replica="r",finished_reason="error"}': 2,
    },
    "tgi": {
        'tgi_request_success{model="m",instance="e"}': 8,
        'tgi_request_failure{model="m",instance="e",err="generation"}': 2,
        'tgi_request_failure{model="m",instance="e",err="validation"}': 4,
        'tgi_request_failure{model="m",instance="e",err="overloaded"}': 5,
    },
    "triton": {
        'nv_inference_request_success{model="m",version="1",instance="e"}': 8,
        'nv_inference_request_failure{model="m",version="1",instance="e",reason="BACKEND"}': 1,
        'nv_inference_request_failure{model="m",version="1",instance="e",reason="OTHER"}': 1,
        'nv_inference_request_failure{model="m",version="1",instance="e",reason="CANCELED"}': 3,
        'nv_inference_request_failure{model="m",version="1",instance="e",reason="REJECTED"}': 3,
    },
}


def folded(preset: str, times: list[int], rename: str = "") -> EngineAccumulator:
    """Scrape an engine whose counters are so many times what they grow by."""
    mapping = parse_mapping(f"preset: {preset}")
    translator, accumulator = Translator(mapping, DecodeOptions("prom_text")), EngineAccumulator("e", StreamsSettings())
    for i, factor in enumerate(times):
        at_ms = T0 + 5_000 * i
        kinds = {name.partition("{")[0] for name in EXPOSED[preset]}
        lines = [f"# TYPE {name} counter" for name in sorted(kinds)]
        lines += [f"{name} {factor * value}" for name, value in EXPOSED[preset].items()]
        text = "\n".join([*lines, ""])
        for one in filter(None, (rename,)):
            text = text.replace(f"{one}:", f"{one}_")
        translated = translator.translate(RawRecord("t", 0, i, at_ms, None, text.encode()), at_ms)
        assert translated.rejects == ()
        packs = Packs("t", 0, "h", "bridge")
        packs.add(translated)
        (packed,) = packs.take()
        accumulator.apply(must(decode(EngineSignals, packed.value)), i, at_ms)
    return accumulator


@pytest.mark.parametrize("preset", EXPOSED)
def test_what_an_engine_failed_is_told_from_what_clients_broke_off_or_found_no_room(preset: str) -> None:
    (told,) = folded(preset, [1, 2]).state().outcomes or ()
    assert (told.model, told.vantage) == ("m", Vantage.ENGINE)
    assert [(pane.succeeded, pane.failed) for pane in told.panes] == [(8, 2)]


def test_a_name_rewritten_with_underscores_is_the_same_series() -> None:
    (told,) = folded("vllm_v1", [1, 3], rename="vllm").state().outcomes or ()
    assert [(pane.succeeded, pane.failed) for pane in told.panes] == [(16, 4)]


def test_a_restarted_engine_counts_from_zero() -> None:
    (told,) = folded("vllm_v1", [5, 1]).state().outcomes or ()
    assert [(pane.succeeded, pane.failed) for pane in told.panes] == [(8, 2)]
