"""`headrace profile fit --topic` against a broker: a curve out of what engines said of themselves."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.fleet_records.file import read_fleet_file
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.codec import encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.records import Record
from headrace.schemas.signals import Metric
from headrace.schemas.state import LatencyState
from headrace.schemas.topics import FLEET, PROFILES, STATE_ENGINE, TopicSettings, topic_table
from solver_inputs import NOW_MS, engine_state, profile, spec

TOKENS = 50.0


def written(broker: Broker, topics: TopicSettings, records: list[tuple[str, Record]]) -> None:
    publisher = Publisher(broker.kafka)
    table = topic_table(topics)
    for role, record in records:
        publisher.publish(table[role].name, record.key, encode(record))
    assert publisher.flush(30.0) == 0
    publisher.close()


def run(broker: Broker, topics: TopicSettings, *arguments: str) -> str:
    flags = (
        *("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"kafka.broker={broker.kafka.broker}"),
        *("--set", f"topics.prefix={topics.prefix}", "--set", f"topics.partitions={topics.partitions}"),
    )
    result = CliRunner().invoke(headrace, ("profile", "fit", *arguments, *flags))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def windows(engine_id: str) -> list[tuple[str, Record]]:
    """A batch whose step takes 10 ms and 0.1 ms more for each request in it, at six loads, 10 s each."""
    made: list[tuple[str, Record]] = []
    for at, running in enumerate((2, 5, 10, 20, 30, 40)):
        ttft, tbot = 0.1, 0.01 + 0.0001 * running
        count = round(10 * running / (ttft + TOKENS * tbot)) or 1
        means = {Metric.TTFT: ttft, Metric.TBOT: tbot, Metric.E2E: ttft + TOKENS * tbot}
        latencies = tuple(LatencyState("m", k, count, s, s, None, None, None) for k, s in means.items())
        end_ms = NOW_MS + 10_000 * (at + 1)
        made.append((STATE_ENGINE, engine_state(engine_id, end_ms, covered_ms=10_000, latencies=latencies)))
    return made


def test_a_profile_is_fitted_to_the_states_of_running_engines(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    fleet: list[tuple[str, Record]] = [(FLEET, spec("engine-a")), (PROFILES, profile(hardware="H100", model="llama"))]
    written(broker, topics, [*fleet, *windows("engine-a")])
    table, out = topic_table(topics), tmp_path / "profiles.toml"
    assert read_latest(broker.kafka, table[STATE_ENGINE].name)
    told = json.loads(run(broker, topics, "--topic", table[STATE_ENGINE].name, "--out", str(out), "--json"))
    (fitted,) = told["fitted"]
    found = fitted["profile"]
    assert (found["profile_id"], found["hardware"], found["model"]) == ("p", "H100", "llama")
    assert found["capacity_rps"] == pytest.approx(40 / (0.1 + TOKENS * 0.014), rel=0.02)
    assert found["output_tokens"] == pytest.approx(TOKENS, rel=1e-6)
    assert len(fitted["stages"]) == 6
    (record,) = read_fleet_file(out).profiles
    assert record.profile_id == "p"


def test_a_topic_without_a_usable_window_says_what_it_holds(broker: Broker, topics: TopicSettings) -> None:
    name = topic_table(topics)[STATE_ENGINE].name
    with pytest.raises(InvalidInputError, match="it holds no record"):
        run(broker, topics, "--topic", name)
    written(broker, topics, [(STATE_ENGINE, engine_state("engine-a"))])
    with pytest.raises(InvalidInputError, match="1 windows not valid"):
        run(broker, topics, "--topic", name)
