"""What `headrace map` says to change: misspelt names, a wrong preset, vantage, clock; and what fails for it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra.commands.map import command
from headrace.schemas.errors import InvalidInputError
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.core.trial.advice import unknown_engines
from headrace.streams.core.trial.proposal import propose
from headrace.streams.core.trial.trial import Trial, try_mapping
from telemetry_inputs import SAMPLES, VLLM_FILES, scrapes, text


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def file(name: str) -> Path:
    return SAMPLES / f"{name}.kafka.jsonl"


def problems(trial: Trial) -> str:
    return "\n".join(trial.problems)


DOCUMENT = '{"time": "2026-08-22T12:00:00Z", "engine": "e", "model": "m", "ttft_ms": 100, "num_running": 2}'
OWN = """
document: {time: time, labels: {engine: engine, model: model}}
identity: {engine: ["{engine}"], model: ["{model}"]}
"""
AUGUST_22_MS = 1_787_400_000_000


@pytest.mark.parametrize(
    ("fields", "failed", "told"),
    [
        (
            "ttft: {path: ttft_mss, unit: ms}, running: {path: num_running}",
            True,
            "ttft: no record has ttft_mss; nearest ttft_ms;",
        ),
        (
            "ttft: {path: ttft_ms, unit: ms}, running: {path: num_runing}",
            False,
            "running: no record has num_runing; nearest num_running;",
        ),
        (
            "ttft: {path: ttft_ms, unit: ms}, tbot: {path: tpot_ms, required: false}",
            False,
            "tbot: no record has tpot_ms",
        ),
        (
            "ttft: {histogram: {count: t.count, sum: t.sum}}, running: {path: num_running}",
            True,
            "ttft: no record has t.count",
        ),
    ],
)
def test_a_misspelt_path_names_the_nearest_and_fails_where_a_latency_hangs_on_it(
    fields: str,
    failed: bool,  # noqa: FBT001 - a case's expectation
    told: str,
) -> None:
    trial = try_mapping([text(DOCUMENT)] * 40, parse_mapping(f"{OWN}fields: {{{fields}}}"), "json")
    assert told in problems(trial)
    assert trial.failed is failed


def test_a_misspelt_name_of_a_series_fails_too_where_the_file_itself_writes_it() -> None:
    for required, failed in (("", True), (", required: false", False)):
        fields = f"ttft: {{names: ['vllm:time_to_frist_token_seconds']{required}}}"
        mapping = parse_mapping(f"preset: vllm_v1\nlabels: {{instance: i}}\nfields: {{{fields}}}")
        trial = try_mapping(scrapes()[:2], mapping, "prom_text")
        assert trial.failed is failed


def test_latencies_of_a_vantage_that_is_kept_apart_are_told_with_what_to_write() -> None:
    fields = "fields: {ttft: {path: ttft_ms, unit: ms}}"
    apart = try_mapping([text(DOCUMENT)], parse_mapping(f"vantage: CLIENT\n{OWN}{fields}"), "json")
    assert "vantage is CLIENT:" in problems(apart)
    assert "write vantage: ENGINE" in problems(apart)
    proposal = propose([text(DOCUMENT)])
    assert proposal is not None
    assert "vantage: ENGINE  # please check" in proposal.text
    assert "vantage" not in problems(try_mapping([text(DOCUMENT)], parse_mapping(proposal.text), "json"))


@pytest.mark.parametrize(("ahead_ms", "failed"), [(0, False), (30_000, False), (30_001, True), (79 * 60_000, True)])
def test_records_dated_ahead_of_the_clock_do_not_fit_as_the_bridge_refuses_them(
    ahead_ms: int,
    failed: bool,  # noqa: FBT001 - a case's expectation
) -> None:
    mapping = parse_mapping(f"{OWN}fields: {{ttft: {{path: ttft_ms, unit: ms}}}}")
    now_ms = AUGUST_22_MS - ahead_ms
    trial = try_mapping([text(DOCUMENT)], mapping, "json", now_ms=now_ms)
    assert trial.failed is failed
    assert ("TIME_IN_FUTURE" in problems(trial)) is failed
    refused = Translator(mapping, DecodeOptions("json")).translate(text(DOCUMENT), now_ms).rejects
    assert bool(refused) is failed
    if ahead_ms > 60_000:
        assert "1 readings are dated up to 79 min ahead" in problems(trial)


@pytest.mark.parametrize("wrong", ["sglang", "tgi"])
@pytest.mark.parametrize("name", ["telegraf_json", "vector_json", "otel_kafka_otlp_json"])
def test_a_wrong_preset_is_told_whose_names_they_are(name: str, wrong: str) -> None:
    result = run("test", "--records", file(name), "--preset", wrong, "--carrier", VLLM_FILES[name])
    assert result.exit_code == 1
    assert "these are vllm_v1's names" in result.stdout
    assert "write preset: vllm_v1" in result.stdout


def test_engines_that_the_fleet_does_not_have_are_named_unless_there_is_no_fleet_yet() -> None:
    assert unknown_engines(["a"], ["a", "b"]) == ()
    assert unknown_engines(["a"], []) == ()
    (told,) = unknown_engines(["10.0.3.23:8000"], ["vllm-a-0"])
    assert told.startswith("10.0.3.23:8000 is not in the fleet (which has vllm-a-0)")
    assert "name it the same" in told


def test_init_overwrites_no_file_unless_it_is_told_to_and_says_what_to_type_next(tmp_path: Path) -> None:
    out = tmp_path / "mapping.yaml"
    out.write_text("edited")
    arguments = ("init", "--records", file("vector_json"), "--out", out)
    refused = run(*arguments)
    assert isinstance(refused.exception, InvalidInputError)
    assert "is there already; --force overwrites it" in str(refused.exception)
    assert out.read_text() == "edited"
    done = run(*arguments, "--force")
    assert done.exit_code == 0
    assert out.read_text().startswith("carrier: vector_json")
    assert f"headrace map test --records {file('vector_json')} --mapping {out}\n" in done.stderr
