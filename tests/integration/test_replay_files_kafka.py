"""`headrace export` and `headrace import` where a range, a topic, a folder or a file is not as it should be."""

import json
import uuid
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewTopic

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.provision import apply_topics
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.errors import HeadraceError
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, TopicSettings, topic_table
from replay_history import PERIOD_MS, START_MS, recorded_run

TICKS = 12
USAGE = 2
DIFFERS, NOT_ALL = 3, 4


def run(*arguments: object) -> Result:
    return CliRunner().invoke(headrace, [str(each) for each in arguments])


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result


def refused(*arguments: object) -> str:
    """What a command says that does not do what it was asked for: one message, never a traceback."""
    result = run(*arguments)
    assert isinstance(result.exception, HeadraceError), repr(result.exception) + result.output
    return str(result.exception)


def at(broker: Broker, topics: TopicSettings) -> tuple[str, ...]:
    kafka = broker.kafka
    place = ("--bootstrap", kafka.bootstrap_servers, "--set", f"kafka.broker={kafka.broker}")
    return (*place, "--set", f"topics.prefix={topics.prefix}", "--set", f"topics.partitions={topics.partitions}")


def export(broker: Broker, topics: TopicSettings, out: Path, from_ms: int = START_MS) -> tuple[object, ...]:
    to_ms = START_MS + TICKS * PERIOD_MS
    return ("export", *at(broker, topics), "--from", from_ms, "--to", max(to_ms, from_ms + 1), "--out", out)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A folder of history: twelve ticks of three engines."""
    return recorded_run(TICKS).write(tmp_path / "history")


@pytest.fixture
def embedded_topics(embedded_broker: Broker) -> TopicSettings:
    """Every topic of the table on the embedded broker, under a prefix of this test's own."""
    settings = fresh_topics()
    apply_topics(embedded_broker.kafka, settings)
    return settings


@pytest.mark.embedded
def test_an_empty_range_is_refused_and_its_folder_is_free_for_the_next_attempt(
    embedded_broker: Broker, embedded_topics: TopicSettings, history: Path, tmp_path: Path
) -> None:
    done("import", history, *at(embedded_broker, embedded_topics))
    out = tmp_path / "out"
    later_ms = START_MS + 86_400_000
    told = refused(*export(embedded_broker, embedded_topics, out, later_ms))
    assert "nothing was recorded in this range" in told
    assert "UTC" in told
    assert not out.exists()
    assert json.loads(done(*export(embedded_broker, embedded_topics, out), "--json").stdout)["ticks"] == TICKS
    done("replay", "verify", "--dir", out, "--processes", 1)
    assert "is not empty" in refused(*export(embedded_broker, embedded_topics, out))


@pytest.mark.embedded
def test_a_prefix_without_topics_and_a_topic_that_is_not_there_are_told_by_name(
    embedded_broker: Broker, embedded_topics: TopicSettings, tmp_path: Path
) -> None:
    nobodys = TopicSettings(prefix=f"nobody-{uuid.uuid4().hex[:8]}.", partitions=2)
    told = refused(*export(embedded_broker, nobodys, tmp_path / "one"))
    assert f"there is no topic {nobodys.prefix}" in told
    assert "topics.prefix" in told
    team = f"{embedded_topics.prefix}team.metrics"
    admin = admin_client(embedded_broker.kafka)
    admin.create_topics([NewTopic(team, 1, 1)])[team].result(30)
    told = refused(*export(embedded_broker, embedded_topics, tmp_path / "two"), "--topic", f"{team[:-1]}z")
    assert f"the nearest is {team}" in told
    assert not (tmp_path / "one").exists()
    assert not (tmp_path / "two").exists()


@pytest.mark.embedded
def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(
    embedded_broker: Broker, embedded_topics: TopicSettings, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert "Not a directory" in refused(*export(embedded_broker, embedded_topics, file / "below"))
    usage = run(*export(embedded_broker, embedded_topics, file))
    assert usage.exit_code == USAGE
    assert "is a file" in usage.output
    assert file.read_text() == "mine"


@pytest.mark.embedded
def test_damaged_and_missing_files_are_all_told_and_nothing_is_published(
    embedded_broker: Broker, embedded_topics: TopicSettings, history: Path, tmp_path: Path
) -> None:
    cut, gone = history / "snapshots/0.avro", next((history / "state.engine").iterdir())
    cut.write_bytes(cut.read_bytes()[:-30])
    gone.unlink()
    told = refused("import", history, *at(embedded_broker, embedded_topics))
    assert f"{cut} is cut short" in told
    assert f"{gone} cannot be read: No such file" in told
    assert "nothing was recorded" in refused(*export(embedded_broker, embedded_topics, tmp_path / "out"))


@pytest.mark.embedded
def test_topics_that_are_not_there_or_too_narrow_are_refused_with_what_to_do(
    embedded_broker: Broker, history: Path
) -> None:
    nobodys = fresh_topics()
    told = refused("import", history, *at(embedded_broker, nobodys))
    assert f"no topic {nobodys.prefix}fleet: run `headrace topics apply`" in told
    narrow = TopicSettings(prefix=nobodys.prefix, partitions=1)
    apply_topics(embedded_broker.kafka, narrow)
    told = refused("import", history, *at(embedded_broker, narrow))
    assert f"{narrow.prefix}state.engine has 1 partitions; the history has 2" in told
    assert "topics.partitions=2" in told


@pytest.mark.embedded
def test_what_came_into_wider_topics_is_verified_as_it_was(
    embedded_broker: Broker, history: Path, tmp_path: Path
) -> None:
    wide = TopicSettings(prefix=fresh_topics().prefix, partitions=3)
    apply_topics(embedded_broker.kafka, wide)
    done("import", history, *at(embedded_broker, wide))
    done(*export(embedded_broker, wide, tmp_path / "out"))
    verified = json.loads(done("replay", "verify", "--dir", tmp_path / "out", "--processes", 1, "--json").stdout)
    assert verified["identical"] == verified["proved"] == TICKS


@pytest.mark.apache
def test_a_range_whose_offsets_expired_is_told_and_one_of_which_nothing_is_left_is_refused(
    apache_broker: Broker, apache_topics: TopicSettings, history: Path, tmp_path: Path
) -> None:
    done("import", history, *at(apache_broker, apache_topics))
    admin, table = admin_client(apache_broker.kafka), topic_table(apache_topics)
    held = HistoryFolder(history)

    def expire(role: str, offset: int) -> None:
        for place in held.places(role):
            found = TopicPartition(table[role].name, place[1], offset)
            deleted = cast("Any", admin).delete_records([found])
            deleted[found].result(30)

    expire("snapshots", 20)
    result = done(*export(apache_broker, apache_topics, tmp_path / "some"))
    assert f"EXPIRED: {table['snapshots'].name}[0]: the log begins at offset 20" in result.stderr
    verified = run("replay", "verify", "--dir", tmp_path / "some", "--processes", 1)
    assert verified.exit_code in (0, DIFFERS, NOT_ALL)
    assert "EXPIRED" in verified.output

    for role in ("snapshots", "decisions", SIGNALS_ENGINE, SIGNALS_DEMAND, SIGNALS_NETWORK):
        expire(role, -1)
    told = refused(*export(apache_broker, apache_topics, tmp_path / "none"))
    assert "nothing was recorded in this range" in told
    assert "the log holds nothing any more" in told
    assert not (tmp_path / "none").exists()
