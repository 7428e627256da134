"""`headrace map`: what a new user sees of records, from a file to a mapping that fits."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra.commands.map import command
from headrace.infra.record_file import read_records
from headrace.schemas.codec import encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.signals import Distribution, EngineSignals, Metric, NetworkProbe, Vantage
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset, parse_mapping
from headrace.streams.core.trial.proposal import propose
from headrace.streams.core.trial.sniff import best_preset, refusals, sniff
from headrace.streams.core.trial.trial import Trial, try_mapping
from telemetry_inputs import ENGINE, MODEL, SAMPLES, T0, VLLM_FILES, records, scrapes, text, vllm_mapping


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def file(name: str) -> Path:
    return SAMPLES / f"{name}.kafka.jsonl"


def test_a_preset_that_fits_says_what_it_found_and_exits_0() -> None:
    result = run(
        "test", "--records", file("otel_kafka_otlp_json"), "--preset", "vllm_v1", "--carrier", "otlp_json", "--json"
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["engines"] == {ENGINE: [MODEL]}
    ttft = next(each for each in found["fields"] if each["field"] == "ttft")
    assert (ttft["readings"], ttft["differences"], ttft["observations"], ttft["period_s"]) == (3, 2, 79, 15.0)
    assert next(event for event in found["events"] if event["field"] == "ttft") == {
        "engine": ENGINE,
        "model": MODEL,
        "field": "ttft",
        "from_ms": T0,
        "to_ms": T0 + 15_000,
        "observations": 38,
        "mean_s": pytest.approx(0.106863, abs=1e-6),
        "value": None,
        "reset": "",
    }
    assert found["unmatched"]["gen_ai.server.time_to_first_token"] == 1


def test_a_preset_that_does_not_fit_says_what_to_write_and_exits_1() -> None:
    result = run("test", "--records", file("telegraf_json"), "--preset", "sglang", "--carrier", "telegraf_json")
    assert result.exit_code == 1
    assert "! ttft: none of sglang:time_to_first_token_seconds" in result.stdout
    assert "nearest names here: vllm:time_to_first_token_seconds" in result.stdout
    assert "write fields.ttft.names" in result.stdout
    assert result.stdout.endswith("does not fit: see above\n")


def test_the_text_shows_fields_outcomes_names_and_differences() -> None:
    result = run("test", "--records", file("vector_json"), "--preset", "vllm_v1", "--carrier", "vector_json")
    assert f"engines: {ENGINE} ({MODEL})" in result.stdout
    assert "ttft *                   2      1" in result.stdout
    assert "superseded" in result.stdout
    assert f"{ENGINE} {MODEL} ttft: 38 requests in 15 s, mean 0.1069 s" in result.stdout
    assert result.stdout.endswith("fits, but see the ! lines above\n")
    settled = run(
        *("test", "--records", file("vector_json"), "--preset", "vllm_v1", "--carrier", "vector_json"),
        *("--set", "solver.expired_after_ms=45000"),
    )
    assert settled.stdout.endswith("\nfits\n")


def test_a_carrier_that_reads_nothing_says_so() -> None:
    result = run("test", "--records", file("vector_json"), "--preset", "vllm_v1", "--carrier", "otlp_json")
    assert result.exit_code == 1
    assert "not one message is otlp_json: try another carrier" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("test", "--preset", "vllm_v1", "--carrier", "json"),
        ("test", "--records", "x", "--topic", "y", "--preset", "vllm_v1", "--carrier", "json"),
        ("test", "--records", "x", "--carrier", "json"),
        ("test", "--records", "x", "--preset", "vllm_v1"),
        ("init",),
    ],
)
def test_wrong_usage_exits_2(arguments: Sequence[str]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("name", VLLM_FILES)
def test_what_init_proposes_for_each_carrier_fits_the_same_records(name: str, tmp_path: Path) -> None:
    out = tmp_path / "mapping.yaml"
    proposed = run("init", "--records", file(name), "--out", out)
    assert proposed.exit_code == 0
    assert f"{VLLM_FILES[name]}; preset vllm_v1" in proposed.stderr
    tried = run("test", "--records", file(name), "--mapping", out)
    # The adapter's sample holds no time between tokens, and that must be told.
    assert tried.exit_code == (name == "prometheus_kafka_adapter_json")


@pytest.mark.parametrize("name", ["custom_request_json", "cloudevents"])
def test_what_init_proposes_for_documents_fits_them(name: str, tmp_path: Path) -> None:
    out = tmp_path / "mapping.yaml"
    assert run("init", "--records", file(name), "--out", out).exit_code == 0
    result = run("test", "--records", file(name), "--mapping", out, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {each["field"] for each in found["fields"]} >= {"ttft", "tbot"}
    assert all(each["readings"] for each in found["fields"])


def test_init_prints_the_file_or_json_and_says_why_nothing_reads_the_records() -> None:
    printed = run("init", "--records", file("vector_json"))
    assert printed.stdout.startswith("carrier: vector_json\npreset: vllm_v1\n")
    assert json.loads(run("init", "--records", file("vector_json"), "--json").stdout)["carrier"] == "vector_json"
    failed = run("init", "--records", file("avro_framings"))
    assert failed.exit_code == 1
    assert "no schema has the fingerprint 47f8c09529579629" in failed.stderr


def test_presets_are_listed_and_shown() -> None:
    assert "vllm_v1      ENGINE   ttft, tbot" in run("presets").stdout
    assert {row["name"] for row in json.loads(run("presets", "--json").stdout)} > {"sglang", "tgi"}
    assert run("presets", "--show", "tgi").stdout.startswith("# Text Generation Inference")


def test_an_engine_that_nothing_tells_is_a_line_to_fill_in_and_does_not_pass_until_it_is() -> None:
    scrape = text((SAMPLES / "prom" / "sglang_scrape.prom").read_text())
    proposal = propose([scrape])
    assert proposal is not None
    assert 'engine: ["<FILL IN>"]' in proposal.text
    trial = try_mapping([scrape], parse_mapping(proposal.text), "prom_text")
    assert trial.failed
    assert "engine is '<FILL IN>'" in next(iter(trial.rejects))
    assert not try_mapping([scrape], parse_mapping(proposal.text.replace("<FILL IN>", "e")), "prom_text").failed


def test_names_that_no_preset_knows_are_proposed_by_their_words() -> None:
    scrape = (
        "# TYPE acme_first_token_ms histogram\n"
        'acme_first_token_ms_bucket{pod="p",model="m",le="+Inf"} 2\n'
        'acme_first_token_ms_sum{pod="p",model="m"} 300\nacme_first_token_ms_count{pod="p",model="m"} 2\n'
    )
    proposal = propose([text(scrape)])
    assert proposal is not None
    trial = try_mapping([text(scrape)], parse_mapping(proposal.text), "prom_text")
    assert (trial.failed, dict(trial.engines)) == (False, {"p": ("m",)})
    unknown = propose([text("strange 1\n")])
    assert unknown is not None
    assert 'ttft: {names: ["<FILL IN>"]}' in unknown.text


def test_documents_without_names_to_go_by_are_left_to_fill_in() -> None:
    proposal = propose([text('{"a": {"b": 1}}')])
    assert proposal is not None
    assert 'engine: ["<FILL IN>"]' in proposal.text
    assert "time: none found" in proposal.text
    assert 'ttft: {path: "<FILL IN>"' in proposal.text
    dashed = propose(
        [text('{"first-token": 1, "lat": {"ttft": 3}, "ttft": {"sum": 1}, "e2e": {"count": 1, "sum": 1}}')]
    )
    assert dashed is not None
    assert 'ttft: {path: "lat.ttft"}  # unit: please check' in dashed.text
    assert "e2e: {histogram: {count: e2e.count, sum: e2e.sum}, unit: s}" in dashed.text


def test_our_own_signals_need_no_mapping() -> None:
    ttft = Distribution("m", Metric.TTFT, 1, 0.1, None, None, 0, -27, (1,))
    own = [
        text(encode(EngineSignals("e", "s", Vantage.ENGINE, 1, 2, (ttft,), None))),
        text(encode(NetworkProbe("a", "b", "s", 1, 0.1))),
    ]
    proposal = propose(own)
    assert proposal is not None
    assert "carrier: avro" in proposal.text
    trial = try_mapping(own, load_preset("vllm_v1"), "avro")
    assert (trial.failed, trial.signals, dict(trial.engines)) == (False, 2, {"e": ("m",)})


def test_nothing_to_look_at_proposes_nothing() -> None:
    assert propose([]) is None
    assert sniff([]) is None
    assert best_preset([]) is None
    assert set(refusals(text("\xff{"))) >= {"json", "otlp_proto"}
    assert try_mapping([], load_preset("vllm_v1"), "json").problems == ("there are no records to try it on",)


def problems(trial: Trial) -> str:
    return "\n".join(trial.problems)


def test_a_wrong_unit_shows_in_the_mean() -> None:
    wrong = vllm_mapping_with("ttft: {names: [{name: 'vllm:time_to_first_token_seconds', unit: us}]}")
    trial = try_mapping(scrapes()[:2], wrong, "prom_text")
    assert "ttft: its mean is 1.06863e-07 s" in problems(trial)
    assert trial.failed


def vllm_mapping_with(fields: str) -> TelemetryMapping:
    return parse_mapping(f"preset: vllm_v1\nlabels: {{instance: i}}\nfields: {{{fields}}}")


def test_one_scrape_is_not_enough_for_a_difference_and_the_trial_says_so() -> None:
    assert "ttft: 1 readings and not one difference" in problems(
        try_mapping(scrapes()[:1], vllm_mapping(), "prom_text")
    )


def test_resets_and_disorder_are_shown() -> None:
    trial = try_mapping(scrapes(), vllm_mapping(), "prom_text")
    # Four distributions, and the requests that ended by `stop` and by `length`.
    assert trial.outcomes["reset"] == 6
    back = try_mapping(reversed(scrapes()[:3]), vllm_mapping(), "prom_text")
    assert "they came out of order; the streams put right what is within streams.grace_ms" in problems(back)


def test_a_field_that_is_there_and_always_refused_points_at_the_rejects() -> None:
    trial = try_mapping(scrapes(), load_preset("vllm_v1"), "prom_text")
    assert trial.failed
    assert "ttft: vllm:time_to_first_token_seconds is there, and every point of it is rejected" in problems(trial)


def test_a_path_that_finds_nothing_is_told() -> None:
    mapping = parse_mapping(
        "document: {}\nidentity: {engine: [e], model: [m]}\nfields: {ttft: {path: nope, required: true}}"
    )
    trial = try_mapping([text('{"a": 1}')], mapping, "json")
    assert (trial.failed, trial.problems[0]) == (True, "ttft: no record has nope; there are a; see fields.ttft")


def test_a_cardinality_flood_is_told() -> None:
    lines = "".join(f'running{{user="{i}"}} 1\n' for i in range(30))
    mapping = parse_mapping(
        "identity: {engine: [e], model: [m]}\nfields: {running: {names: [running]}}\nlimits: {max_series: 10}"
    )
    assert "20 readings are of more series than limits.max_series" in problems(
        try_mapping([text(lines)], mapping, "prom_text")
    )


def test_a_record_file_names_every_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    place = '"topic":"t","partition":0,"offset":1,"timestamp_ms":2'
    good = f'{{{place},"key_b64":null,"headers":[["h","eA=="]],"value_b64":null}}'
    path.write_text(f"{good}\n\nnope\n[]\n{{}}\n")
    with pytest.raises(InvalidInputError) as raised:
        read_records(path)
    assert [p[:17] for p in raised.value.problems] == ["line 3 is no reco", "line 4 is no reco", "line 5 is no reco"]
    path.write_text(good)
    (record,) = read_records(path)
    assert (record.headers, record.key, record.value) == ((("h", b"x"),), None, None)
    path.write_text("nope\n" * 50)
    with pytest.raises(InvalidInputError, match="20 problems"):
        read_records(path)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_records(tmp_path / "none.jsonl")


def test_a_mapping_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "m.yaml"
    for mapping in (tmp_path / "none.yaml", broken):
        broken.write_bytes(b"\xff\xfe")
        result = run("test", "--records", file("vector_json"), "--mapping", mapping, "--carrier", "vector_json")
        assert isinstance(result.exception, InvalidInputError)


def test_limit_reads_only_so_many_records() -> None:
    assert len(read_records(file("vector_json"), 5)) == 5
    assert records("vector_json")[:5] == read_records(file("vector_json"), 5)


def test_a_period_that_the_staleness_limit_does_not_allow_for_is_told() -> None:
    result = run("test", "--records", file("telegraf_json"), "--preset", "vllm_v1", "--carrier", "telegraf_json")
    assert "the source speaks every 15 s, and solver.expired_after_ms is 15000" in result.stdout
    assert "set it to 45000 or more" in result.stdout


REWRITES = """
def rename(points, origin):
    return [point._replace(name=point.name.replace("acme_", "")) for point in points]
"""


def test_a_mappings_own_python_turns_points_into_others_before_they_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_rewrites.py").write_text(REWRITES)
    scrape, mapping = tmp_path / "scrape.prom", tmp_path / "m.yaml"
    scrape.write_text("acme_running 3\n")
    base = "identity: {engine: [e], model: [m]}\nfields: {running: {names: [running]}}\n"
    for entry_point, status in (("acme_rewrites:rename", 0), ("acme_rewrites:none", 1), ("acme_absent:rename", 1)):
        mapping.write_text(f"{base}python: {entry_point}\n")
        result = run("test", "--records", scrape, "--mapping", mapping, "--carrier", "prom_text")
        assert result.exit_code == status
    with pytest.raises(InvalidInputError, match=r"python is 'os\.system'; expected package\.module:function"):
        parse_mapping(f"{base}python: os.system\n")
