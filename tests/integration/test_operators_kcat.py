"""The topics are read by clients that know nothing of headrace: by the schema files, and by kcat as the page says."""

import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from conftest import fresh_topics
from fleet_inputs import NEAREST, fixed_snapshot
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.codec import encode
from headrace.schemas.plain import to_plain
from headrace.schemas.topics import WEIGHTS, topic_table
from headrace.schemas.weights import Snapshot

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "infra" / "docs" / "operators.md"
SCRIPT = (sys.executable, str(ROOT / "infra" / "examples" / "decode_records.py"))
SCHEMAS = sorted(map(str, (ROOT / "schemas" / "headrace" / "schemas" / "avro").glob("*.avsc")))
SNAPSHOT = fixed_snapshot(NEAREST)
GONE = b"cluster-z|m|default"


def documented() -> list[str]:
    """Give the page's kcat lines."""
    return re.findall(r"^kcat .+$", PAGE.read_text("utf-8"), re.MULTILINE)


def published(broker: Broker) -> str:
    """Publish a snapshot, and a route that was taken back; give the topic."""
    topics = fresh_topics()
    apply_topics(broker.kafka, topics)
    name, publisher = topic_table(topics)[WEIGHTS].name, Publisher(broker.kafka)
    publisher.publish(name, GONE, None)
    for record in (*SNAPSHOT.routes, SNAPSHOT.commit):
        publisher.publish(name, record.key, encode(record))
    publisher.close(10.0)
    return name


def said(stdout: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


def expected(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Give what the records say, each value as JSON would have it."""
    lines: list[dict[str, Any]] = [{"key": GONE.decode(), "record": None}]
    for record in (*snapshot.routes, snapshot.commit):
        value = json.loads(json.dumps(to_plain(record)))
        lines.append({"key": record.key.decode(), "record": f"headrace.{type(record).__name__}", "value": value})
    return lines


@pytest.mark.embedded
def test_the_published_schema_files_are_all_that_a_plain_client_needs(embedded_broker: Broker) -> None:
    servers, topic = embedded_broker.kafka.bootstrap_servers, published(embedded_broker)
    client = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "plain", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    client.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    framed = b""
    while (message := client.poll(30.0)) is not None and message.error() is None:
        key, value = message.key() or b"", message.value()
        size = struct.pack(">i", -1 if value is None else len(value))
        framed += b"%d %s " % (len(key), key) + size + (value or b"")
    client.close()
    end = None if message is None else message.error()
    assert end is not None, "the end of the partition did not come"
    assert end.code() == confluent_kafka.KafkaError._PARTITION_EOF
    done = subprocess.run((*SCRIPT, *SCHEMAS), input=framed, capture_output=True, check=True)
    assert said(done.stdout) == expected(SNAPSHOT)


def test_a_record_of_a_schema_that_was_not_given_is_told_by_its_fingerprint() -> None:
    value, key = encode(SNAPSHOT.commit), SNAPSHOT.commit.key
    framed = b"%d %s " % (len(key), key) + struct.pack(">i", len(value)) + value
    route = next(file for file in SCHEMAS if file.endswith("route_weights.avsc"))
    done = subprocess.run((*SCRIPT, route), input=framed, capture_output=True, check=True)
    assert said(done.stdout) == [{"key": "!commit", "unknown": value[:10].hex()}]


@pytest.mark.apache
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (Debian, Ubuntu: apt-get install kcat)")
def test_kcat_reads_the_topics_as_the_page_says(apache_broker: Broker) -> None:
    """Not on the embedded broker: its first answer is not understood by the librdkafka of Debian's kcat (2.0)."""
    servers, topic = apache_broker.kafka.bootstrap_servers, published(apache_broker)

    def run(line: str) -> bytes:
        line = line.replace("kafka-1:9092", servers).replace("headrace.weights", topic)
        line = line.replace("| python ", f"| {sys.executable} ")
        return subprocess.run(("bash", "-c", line), cwd=ROOT, capture_output=True, check=True, timeout=60).stdout

    decoding, keys = documented()
    assert said(run(decoding)) == expected(SNAPSHOT)
    told = run(keys).decode().splitlines()
    assert [line.partition(" ")[2] for line in told] == [line["key"] for line in expected(SNAPSHOT)]


def test_the_page_has_the_recipe() -> None:
    assert len(documented()) == 2
