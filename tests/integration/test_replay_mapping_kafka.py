"""A team's own topic on a broker, replayed under a mapping of a file: by one command, and by way of exported files."""

import json
import time
from pathlib import Path

from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from collector import batch, engine_id
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.schemas.bus.clients import admin_client, producer_options
from headrace.schemas.codec import encode
from headrace.schemas.signals import Demand, NetworkProbe
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_DEMAND, SIGNALS_NETWORK, TopicSettings, topic_table
from headrace.streams.core.partitioner import partition_of
from solver_inputs import profile, spec

ENGINES, PERIODS, PERIOD_MS = 2, 8, 1_000
MAPPING = "preset: vllm_v1\ncarrier: otlp_proto\nidentity: {engine: ['gpu/{service.instance.id}'], model: ['m']}\n"


def published(broker: Broker, topics: TopicSettings) -> tuple[str, int, int]:
    """Put telemetry, a fleet and what gateways see onto the broker; give the topic, and the range."""
    team, table = f"{topics.prefix}team.metrics", topic_table(topics)
    admin = admin_client(broker.kafka)
    for made in admin.create_topics([NewTopic(team, 2, 1)]).values():
        made.result(30)
    producer = Producer(producer_options(broker.kafka))
    begin_ms = time.time_ns() // 1_000_000 - PERIODS * PERIOD_MS
    at_ms = begin_ms + PERIODS * PERIOD_MS
    told = [(PROFILES, profile()), *((FLEET, spec(f"gpu/{engine_id(n)}")) for n in range(ENGINES))]
    told += [(SIGNALS_DEMAND, Demand("c", "m", "default", "g", at_ms - 1_000, at_ms, 40, 0, 0))]
    told += [(SIGNALS_NETWORK, NetworkProbe("c", "site-a", "p", at_ms, 0.01))]
    for role, record in told:
        topic = table[role]
        place = partition_of(record.key, topic.partitions)
        producer.produce(topic.name, encode(record), record.key, partition=place, timestamp=begin_ms)
    for period in range(PERIODS):
        seen_ms = begin_ms + PERIOD_MS * period
        producer.produce(team, batch(ENGINES, period, seen_ms), partition=1, timestamp=seen_ms + 20)
    assert producer.flush(30) == 0
    return team, begin_ms - PERIOD_MS, at_ms + 6 * PERIOD_MS


def run(*arguments: object) -> str:
    result = CliRunner().invoke(headrace, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_telemetry_on_a_broker_is_replayed_under_a_mapping_of_a_file(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    team, from_ms, to_ms = published(broker, topics)
    mapping = tmp_path / "other.yaml"
    mapping.write_text(MAPPING)
    kafka = broker.kafka
    place = ("--bootstrap", kafka.bootstrap_servers, "--set", f"kafka.broker={kafka.broker}")
    place += ("--set", f"topics.prefix={topics.prefix}", "--set", f"topics.partitions={topics.partitions}")
    ends = ("--from", from_ms, "--to", to_ms)
    variant = ("--policy", "lp", "--processes", 1, "--json")

    folder = tmp_path / "history"
    counts = json.loads(run("export", *place, *ends, "--out", folder, "--topic", team, "--json"))["records"]
    assert counts[f"foreign/{team}"] == PERIODS
    by_files = run("replay", "run", "--dir", folder, "--mapping", mapping, "--out", tmp_path / "files", *variant)
    at_once = run(
        "replay", "run", *place, *ends, "--mapping", f"{team}={mapping}", "--out", tmp_path / "kafka", *variant
    )
    found = json.loads(by_files)["variants"]
    assert found == json.loads(at_once)["variants"]
    assert found[0]["ticks"] > 0
    comparison = json.loads((tmp_path / "files" / "comparison.json").read_text())
    assert "translated by another mapping" in comparison["source"]
    loads = comparison["variants"][0]["series"]["load"]
    assert set(loads) >= {f"gpu/{engine_id(n)}" for n in range(ENGINES)}
