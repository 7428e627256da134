"""Engines that publish nothing: the call in their process, and the sidecar beside it."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.infra.dead_letters.unknown_engines import told_unknown, unknown_engines_in
from headrace.infra.state_table import line, rows_at
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.check_signals import check_signal
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals, Health, Metric, Vantage
from headrace.schemas.state import Invalid, LatencyState, OutcomePane, OutcomeState
from headrace.solver.settings import SolverSettings
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.publish.observations import Observations, Observed
from headrace.streams.publish.publisher import SignalPublisher
from headrace.streams.publish.scrape import Endpoint
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0, scrapes

TEXT = scrapes()[0].value or b""


def publisher(**more: object) -> SignalPublisher:
    return SignalPublisher(KafkaSettings("127.0.0.1:1"), "t", "e1", "m", **more)  # type: ignore[arg-type]


def test_what_was_observed_is_one_distribution_a_model_and_metric() -> None:
    engine = publisher()
    engine.observe(ttft_s=0.25, tbot_s=0.01)
    engine.observe(ttft_s=0.75)
    engine.observe(ttft_s=0.5, model="other")
    signals = engine.close_period(T0, T0 + 1_000)
    assert signals is not None
    assert check_signal(signals, T0 + 1_000) is None
    found = {(d.model, d.metric): (d.count, d.sum_s, d.min_s, d.max_s) for d in signals.distributions}
    assert found == {
        ("m", Metric.TTFT): (2, 1.0, 0.25, 0.75),
        ("m", Metric.TBOT): (1, 0.01, 0.01, 0.01),
        ("other", Metric.TTFT): (1, 0.5, 0.5, 0.5),
    }


def test_a_period_without_requests_is_told_too_with_the_last_status() -> None:
    engine = publisher()
    assert engine.close_period(T0, T0 + 1_000) == EngineSignals("e1", "e1", "ENGINE", T0, T0 + 1_000, (), None)  # type: ignore[arg-type]
    engine.status(Health.DEGRADED, replicas_ready=2, running=3.0)
    told = engine.close_period(T0 + 1_000, T0 + 2_000)
    assert told is not None
    assert told.status is not None
    assert (told.status.health, told.status.replicas_ready, told.status.waiting) == (Health.DEGRADED, 2, None)


@pytest.mark.parametrize("latency", [float("nan"), float("inf"), -0.1, True, "0.1", 1e9])
def test_what_is_no_latency_is_counted_and_left_out(latency: object) -> None:
    engine = publisher()
    engine.observe(ttft_s=latency, tbot_s=0.01)  # type: ignore[arg-type]
    signals = engine.close_period(T0, T0 + 1_000)
    assert signals is not None
    assert [d.metric for d in signals.distributions] == [Metric.TBOT]
    assert engine.dropped == 1


@pytest.mark.parametrize("model", ["a|b", "", 7, "x" * 300])
def test_a_model_that_is_no_name_costs_its_own_requests_alone(model: object) -> None:
    observations = Observations()
    observations.observe(Observed(model, 0.1, None, None, None))  # type: ignore[arg-type]
    observations.observe(Observed("m", 0.1, None, None, None))
    assert [(d.model, d.count) for d in observations.close()] == [("m", 1)]
    assert observations.invalid == 1


def test_more_than_there_is_room_for_is_dropped_and_counted() -> None:
    observations = Observations(most=10)
    for _ in range(25):
        observations.observe(Observed("m", 0.1, None, None, None))
    assert observations.close()[0].count == 10
    assert observations.dropped == 15
    assert observations.close() == ()


def test_eight_threads_lose_no_request() -> None:
    observations, total = Observations(), 0
    threads = [
        threading.Thread(
            target=lambda: [observations.observe(Observed("m", 0.1, None, None, None)) for _ in range(2_000)]
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        total += sum(d.count for d in observations.close())
    total += sum(d.count for d in observations.close())
    assert total == 16_000


def test_a_name_that_is_no_identifier_is_told_before_anything_starts() -> None:
    with pytest.raises(InvalidInputError, match="engine_id"):
        SignalPublisher(KafkaSettings(), "t", "a|b", "m")


def test_a_broker_that_is_away_holds_up_neither_requests_nor_the_stop() -> None:
    said: list[str] = []
    with publisher(on_problem=said.append) as engine:
        for _ in range(1_000):
            engine.observe(ttft_s=0.1)
        engine.stop(0.5)
    assert engine.counts.delivered == 0


class Metrics(BaseHTTPRequestHandler):
    """The endpoint of an engine: /metrics serves, /500 fails, the rest is not there."""

    def do_GET(self) -> None:
        status, body = {"/metrics": (200, TEXT), "/500": (500, b""), "/other": (200, b"up 1\n")}[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its base names it so
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_scrape_gives_the_engines_readings_under_the_name_it_was_told(address: str) -> None:
    scraped = Endpoint(f"{address}/metrics", "engine-a", load_preset("vllm_v1")).scrape()
    assert scraped.problem == ""
    (packed,) = scraped.signals
    signals = must(decode(EngineSignals, packed.value))
    assert (signals.engine_id, signals.lineage) == ("engine-a", None)
    assert {each.field for each in signals.series or ()} >= {"TTFT", "TBOT", "RUNNING", "KV_USAGE"}
    # Scraped a moment ago: its clock is this machine's.
    assert check_signal(signals, signals.period_end_ms) is None


@pytest.mark.parametrize(
    ("path", "words"), [("/500", "answers 500"), ("/other", "not one series fits the mapping vllm_v1")]
)
def test_an_endpoint_that_fails_is_a_sentence_and_no_signal(address: str, path: str, words: str) -> None:
    scraped = Endpoint(address + path, "engine-a", load_preset("vllm_v1")).scrape()
    assert scraped.signals == ()
    assert words in scraped.problem


def test_nobody_at_the_address_is_a_sentence() -> None:
    scraped = Endpoint("http://127.0.0.1:1/metrics", "engine-a", load_preset("vllm_v1")).scrape()
    assert "does not answer" in scraped.problem


def test_series_that_name_no_model_get_the_one_that_was_told() -> None:
    text = b"tgi_batch_current_size 3\ntgi_queue_size 0\n"
    endpoint = Endpoint("http://x", "engine-a", load_preset("tgi"), model="zephyr")
    (packed,) = endpoint.read(text, T0).signals
    signals = must(decode(EngineSignals, packed.value))
    assert {each.model for each in signals.series or ()} == {"zephyr"}
    assert endpoint.read(text, T0).translated.rejects == ()


def test_once_prints_what_would_be_published_and_needs_no_broker(address: str) -> None:
    arguments = ["signals", "publish", "--url", f"{address}/metrics", "--engine-id", "e1", "--preset", "vllm_v1"]
    result = CliRunner().invoke(headrace, [*arguments, "--once"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["engine_id"] == "e1"
    failed = CliRunner().invoke(headrace, [*arguments[:3], f"{address}/500", *arguments[4:], "--once"])
    assert failed.exit_code == 1
    assert "answers 500" in failed.output


def test_the_table_of_states_says_who_is_heard_how_quick_it_is_and_what_is_amiss() -> None:
    latency = LatencyState("m", Metric.TTFT, 38, 0.107, 0.1, 0.1, 0.239, 0.3)
    fold = EngineAccumulator("engine-a", StreamsSettings())
    heard = replace(fold.state(), invalid=Invalid.LOW_COVERAGE, last_signal_ms=T0)
    ended = tuple(
        OutcomeState(model, Vantage.ENGINE, 1_000, (OutcomePane(T0, 30, failed, is_final=True),))
        for model, failed in (("m", 10), ("other", 0))
    )
    state = replace(heard, latencies=(latency,), filled=("GATEWAY_APART",), outcomes=ended)
    (row,) = rows_at({b"engine-a": state}, SolverSettings(), T0 + 2_500)
    assert (row["engine"], row["model"], row["age_s"], row["requests"]) == ("engine-a", "m", 2.5, 38)
    assert (row["failed"], row["ttft_s"], row["tbot_s"]) == (0.25, 0.107, None)
    assert line(row).split() == [
        *("engine-a", "m", "2.5", "38", "0.25", "0.107", "0.239", "-", "-", "0"),
        *("not", "valid:", "LOW_COVERAGE;", "GATEWAY_APART"),
    ]


def test_an_engine_that_is_silent_while_others_speak_is_stale_in_the_table() -> None:
    fold = EngineAccumulator("engine-a", StreamsSettings())
    silent = replace(fold.state(), invalid=Invalid.NO, period_ms=1_000, last_signal_ms=T0)
    heard = replace(silent, engine_id="engine-b", last_signal_ms=T0 + 16_000)
    out, there = rows_at({b"engine-a": silent, b"engine-b": heard}, SolverSettings(), T0 + 16_000)
    assert (out["valid"], out["age_s"]) == ("STALE: silent for 16.0 s; out from 6.0 s, it reports every 1.0 s", 16.0)
    assert (there["valid"], str(there["age_s"])) == ("valid", "0.0")
    ahead = rows_at({b"engine-b": heard}, SolverSettings(), T0 + 15_999)[0]
    assert line(ahead).split()[2] == "0"


def test_an_engine_that_only_a_client_saw_has_no_age() -> None:
    fold = EngineAccumulator("engine-a", StreamsSettings())
    fold.apply(EngineSignals("engine-a", "s", Vantage.CLIENT, T0 - 1_000, T0, (), None), 0, T0)
    (row,) = rows_at({b"engine-a": fold.state()}, SolverSettings(), T0)
    assert (row["age_s"], row["failed"], row["valid"]) == (None, None, "not valid: NO_SIGNAL_YET")
    assert line(row).split()[:3] == ["engine-a", "-", "-"]


def test_engines_that_were_refused_for_their_name_are_told() -> None:
    reason = RejectReason.UNKNOWN_ENGINE
    refused = DeadLetter("signals", 0, 1, T0, b"10.0.3.23:8000", b"v", reason, "engine_id is", "streams")
    other = replace(refused, record_key=b"other", reason=RejectReason.MALFORMED)
    values = (encode(refused), encode(other), encode(refused), b"no letter")
    found = unknown_engines_in(RawRecord("letters", 0, n, T0, None, value) for n, value in enumerate(values))
    assert found == ("10.0.3.23:8000",)
    assert told_unknown(found).startswith("signals of 10.0.3.23:8000 were refused")
    assert "d, e and 1 more" in told_unknown(("a", "b", "c", "d", "e", "f"))
