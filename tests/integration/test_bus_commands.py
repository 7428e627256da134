"""`headrace topics` and `headrace fleet` against a broker: what they print, and with which status they end."""

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.kafka_edge import MissingTopicError
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.topics import DEAD_LETTERS, FLEET, ROLES, TopicSettings, topic_table

FLEET_FILE = """
[[engines]]
engine_id = "engine-a"
site = "eu"
models = ["m"]
profile_id = "p"
[[engines]]
engine_id = "engine-b"
site = "us"
models = ["m"]
profile_id = "p"
capacity_rps_per_replica = 50
drain = true
[[profiles]]
profile_id = "p"
hardware = "H100"
model = "m"
capacity_rps = 10
output_tokens = 100
load_knots = [0, 1]
ttft_s = [0.1, 0.2]
tbot_s = [0.01, 0.02]
measured_from_load = 0
measured_to_load = 1
source = "bench"
"""


class Shell:
    """Runs commands with the flags that lead to one test's topics."""

    def __init__(self, broker: Broker, topics: TopicSettings) -> None:
        self.flags = (
            *("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"kafka.broker={broker.kafka.broker}"),
            *("--set", f"topics.prefix={topics.prefix}", "--set", f"topics.partitions={topics.partitions}"),
        )

    def __call__(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(headrace, (*arguments, *self.flags))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout


@pytest.fixture
def shell(broker: Broker, topics: TopicSettings) -> Shell:
    return Shell(broker, topics)


def test_topics_are_missing_then_created_then_right(broker: Broker, topics: TopicSettings) -> None:
    shell = Shell(broker, TopicSettings(prefix=f"{topics.prefix}new.", partitions=1))
    status, text = shell("topics", "diff")
    assert status == 1
    assert text.splitlines() == [f"{topics.prefix}new.{role} is missing" for role in ROLES]
    status, text = shell("topics", "apply", "--json")
    assert status == 0
    assert [row["outcome"] for row in json.loads(text)] == ["created"] * len(ROLES)
    assert shell("topics", "diff") == (0, "every topic is as it should be\n")
    assert shell("topics", "diff", "--json") == (0, "[]\n")


def test_a_wrong_partition_count_is_told_and_the_status_is_1(shell: Shell, topics: TopicSettings) -> None:
    wrong = ("--set", f"topics.partitions={topics.partitions + 2}")
    shell.flags = (*shell.flags, *wrong)
    status, text = shell("topics", "apply")
    assert status == 1
    assert f"{topics.prefix}signals.engine: partitions is 2; should be 4 (cannot be mended" in text
    status, text = shell("topics", "diff", "--json")
    assert status == 1
    assert {row["can_be_mended"] for row in json.loads(text)} == {False}


def test_topics_are_listed_without_a_broker() -> None:
    result = CliRunner().invoke(headrace, ("topics", "list", "--json", "--bootstrap", "127.0.0.1:1"))
    assert result.exit_code == 0
    assert [row["role"] for row in json.loads(result.stdout)] == list(ROLES)


def test_a_fleet_is_published_listed_and_an_engine_removed_by_a_tombstone(
    shell: Shell, broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET_FILE)
    assert shell("fleet", "apply", str(file)) == (0, "published 2 engines, 1 profile\n")
    status, text = shell("fleet", "list")
    assert status == 0
    assert text.splitlines() == [
        "engine engine-a at eu: m; profile p; the profile's capacity",
        "engine engine-b at us: m; profile p; 50 rps a replica; draining",
        "profile p: m on H100, 10 rps",
    ]
    assert shell("fleet", "remove", "engine-b", "--json") == (0, '{"removed": ["engine-b"]}\n')
    listed = json.loads(shell("fleet", "list", "--json")[1])
    assert [engine["engine_id"] for engine in listed["engines"]] == ["engine-a"]

    reader = CompactedReader(broker.kafka, [topic_table(topics)[FLEET].name])
    records = []
    while not reader.caught_up:
        records += reader.poll(5.0)
    reader.close()
    assert (records[-1].key, records[-1].value) == (b"engine-b", None)


def test_an_engine_that_is_not_there_is_not_removed_and_the_nearest_is_named(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET_FILE)
    shell("fleet", "apply", str(file))
    with pytest.raises(InvalidInputError, match="'engine-c' is no engine of the fleet; the nearest is engine-"):
        shell("fleet", "remove", "engine-a", "engine-c")
    assert len(json.loads(shell("fleet", "list", "--json")[1])["engines"]) == 2


def test_an_engine_without_its_profile_is_refused_unless_the_topic_has_it(
    shell: Shell, broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    whole, alone = tmp_path / "whole.toml", tmp_path / "alone.toml"
    whole.write_text(FLEET_FILE)
    alone.write_text(FLEET_FILE.partition("[[profiles]]")[0])
    with pytest.raises(InvalidInputError, match="profile_id is 'p', which is neither in the file nor on the topic"):
        shell("fleet", "apply", str(alone))
    assert read_latest(broker.kafka, topic_table(topics)[FLEET].name) == {}
    shell("fleet", "apply", str(whole))
    assert shell("fleet", "apply", str(alone)) == (0, "published 2 engines, 0 profiles\n")
    alone.write_text(alone.read_text().replace('"engine-b"', '"engine-c"'))
    left = "1 engine of the topic is not in the file and stays: engine-b; `headrace fleet remove` takes one out\n"
    assert shell("fleet", "apply", str(alone)) == (0, f"published 2 engines, 0 profiles\n{left}")


def test_without_topics_every_command_says_which_and_what_to_run(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    shell = Shell(broker, TopicSettings(prefix=f"{topics.prefix}none.", partitions=1))
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET_FILE)
    for typed in (("fleet", "list"), ("fleet", "apply", str(file)), ("fleet", "remove", "engine-a"), ("dead-letters",)):
        with pytest.raises(MissingTopicError, match=r"^no topics? .*none\..*: run `headrace topics apply`$"):
            shell(*typed)


def test_the_form_applies_as_it_is_and_without_any_profile_the_way_to_one_is_told(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET_FILE.partition("[[profiles]]")[0])
    with pytest.raises(
        InvalidInputError, match=r"no profiles are published; add \[\[profiles\]\]: see `headrace fleet"
    ):
        shell("fleet", "apply", str(file))
    file.write_text(CliRunner().invoke(headrace, ("fleet", "apply", "--form")).stdout)
    assert shell("fleet", "apply", str(file)) == (0, "published 3 engines, 1 profile\n")


def test_dead_letters_are_shown_with_their_bytes_and_can_be_chosen(
    shell: Shell, broker: Broker, topics: TopicSettings
) -> None:
    from headrace.schemas.bus.publisher import Publisher

    assert shell("dead-letters") == (0, "")
    letters = [
        DeadLetter("signals", 0, i, 1_000, b"k", b"\x00\xff", reason, "why", "streams")
        for i, reason in enumerate((RejectReason.MALFORMED, RejectReason.UNKNOWN_ENGINE))
    ]
    publisher = Publisher(broker.kafka)
    for letter in letters:
        publisher.publish(topic_table(topics)[DEAD_LETTERS].name, letter.key, encode(letter))
    assert publisher.close(30) == 0
    status, text = shell("dead-letters")
    assert status == 0
    assert [("MALFORMED" in line, "signals/" in line) for line in text.splitlines()[1:]] == [
        (True, True),
        (False, True),
    ]
    (line,) = shell("dead-letters", "--json", "--reason", "malformed", "--topic", "signals", "--since", "1h")[
        1
    ].splitlines()
    assert base64.b64decode(json.loads(line)["value_base64"]) == b"\x00\xff"
    assert shell("dead-letters", "--topic", "other")[1] == ""


def test_an_unreadable_record_is_told_and_hides_nothing_else(
    shell: Shell, broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    from headrace.schemas.bus.publisher import Publisher

    file = tmp_path / "fleet.toml"
    file.write_text(FLEET_FILE)
    shell("fleet", "apply", str(file))
    publisher = Publisher(broker.kafka)
    publisher.publish(topic_table(topics)[FLEET].name, b"engine-x", b"rubbish")
    assert publisher.close(30) == 0
    listed = json.loads(shell("fleet", "list", "--json")[1])
    assert len(listed["engines"]) == 2
    assert "key b'engine-x', offset 2: MALFORMED" in listed["unreadable"][0]
