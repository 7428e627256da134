"""`headrace tail` as a process on a real broker: before any snapshot, at the end, since one, filtered, followed."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.infra.brokers.contract import Broker
from headrace.infra.processes.child import ChildProcess
from headrace.schemas.bus.transactions import Committed, Ready, TransactionalPublisher
from headrace.schemas.codec import encode
from headrace.schemas.topics import WEIGHTS, TopicSettings, topic_table
from solver_desk import WAIT_S, until
from solver_ticks import Shares, stamp, tick_of

if TYPE_CHECKING:
    from headrace.solver.core.tick import Tick

HEADRACE = str(Path(sys.executable).with_name("headrace"))
FIRST: Shares = {"tokyo|m|default": {"e1": 1_000_000}, "paris|n|default": {"e2": 1_000_000}}
SECOND: Shares = {"tokyo|m|default": {"e1": 600_000, "e2": 400_000}, "paris|n|default": {"e2": 1_000_000}}


class Writer:
    """Writes snapshots as the solver would, each a transaction."""

    def __init__(self, broker: Broker, topics: TopicSettings) -> None:
        self._topic = topic_table(topics)[WEIGHTS].name
        self._pen = TransactionalPublisher(broker.kafka, f"{self._topic}.writer")
        self._written: list[Tick] = []

    def write(self, *snapshots: Shares) -> None:
        if not self._written:
            assert self._pen.init() == Ready()
        for shares in snapshots:
            previous = self._written[-1].snapshot if self._written else None
            tick = tick_of(shares, stamp(1, len(self._written) + 1), previous)
            routes = {route.key: route for route in tick.snapshot.routes}
            records = [(self._topic, key, encode(routes[key])) for key in sorted(tick.changed)]
            commit = (self._topic, tick.snapshot.commit.key, encode(tick.snapshot.commit))
            assert self._pen.publish_all([*records, commit]) == Committed()
            self._written.append(tick)

    def close(self) -> None:
        self._pen.close()


@pytest.fixture
def writer(broker: Broker, topics: TopicSettings) -> Iterator[Writer]:
    made = Writer(broker, topics)
    yield made
    made.close()


@pytest.fixture
def flags(broker: Broker, topics: TopicSettings) -> tuple[str, ...]:
    return ("--bootstrap", broker.kafka.bootstrap_servers, "--set", f"topics.prefix={topics.prefix}")


def tail(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (HEADRACE, "tail", "--no-follow", *flags), capture_output=True, text=True, timeout=60, check=False
    )


def test_before_any_snapshot_it_says_so_and_prints_nothing(flags: tuple[str, ...]) -> None:
    done = tail("--json", *flags)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "headrace tail: there is no snapshot yet\n"


@pytest.mark.parametrize(
    ("what", "topic", "since"),
    [
        (("decisions",), "decisions", " since 10 s ago; --since 5m looks further back"),
        (("decisions", "--since", "5m"), "decisions", " since 5m"),
        (("dead-letters",), "dead-letters", ""),
    ],
)
def test_of_a_log_without_records_it_says_that_there_is_nothing(
    flags: tuple[str, ...], topics: TopicSettings, what: tuple[str, ...], topic: str, since: str
) -> None:
    done = tail(*what, *flags)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"headrace tail: nothing in {topic_table(topics)[topic].name}{since}\n"


def test_at_the_end_the_newest_snapshot_is_one_whole_line(flags: tuple[str, ...], writer: Writer) -> None:
    writer.write(FIRST, SECOND)
    (line,) = tail("--json", *flags).stdout.splitlines()
    assert json.loads(line)["commit"]["version"] == 2
    assert [route["model"] for route in json.loads(line)["routes"]] == ["n", "m"]


def test_since_a_version_each_snapshot_is_a_line_of_what_it_wrote(flags: tuple[str, ...], writer: Writer) -> None:
    writer.write(FIRST, SECOND, SECOND)
    lines = [json.loads(line) for line in tail("--json", "--since", "1", *flags).stdout.splitlines()]
    assert [(line["commit"]["version"], len(line["routes"])) for line in lines] == [(1, 2), (2, 1), (3, 0)]


def test_a_table_is_filtered_and_says_when_nothing_moved(flags: tuple[str, ...], writer: Writer) -> None:
    writer.write(FIRST, SECOND)
    said = tail("--since", "1", "--cluster", "paris", *flags).stdout
    assert "paris|n|default" in said
    assert "tokyo" not in said
    assert said.splitlines()[-1] == "version 2: nothing moved"
    nowhere = tail("--cluster", "nowhere", *flags).stderr
    assert nowhere == "headrace tail: no route is of cluster 'nowhere'; there are paris, tokyo\n"


def test_redacted_lines_name_engines_by_the_secret_and_say_so_where_there_is_none(
    flags: tuple[str, ...], writer: Writer
) -> None:
    writer.write(FIRST)
    kept = ("--redact", *flags, "--set", "redact.secret=a secret of ours")
    once, again, other = tail(*kept), tail(*kept), tail("--redact", *flags)
    assert (once.stdout, once.stderr) == (again.stdout, "")
    assert "redact.secret keeps them" in other.stderr
    assert other.stdout != once.stdout
    shown = {target["engine"] for route in json.loads(once.stdout)["routes"] for target in route["targets"]}
    assert len(shown) == 2
    assert "e1" not in shown


def test_following_it_waits_for_the_first_snapshot_and_ends_in_good_order_when_told(
    flags: tuple[str, ...], writer: Writer, tmp_path: Path
) -> None:
    process = ChildProcess((HEADRACE, "tail", "--json", *flags), tmp_path / "tail.log")
    process.start()
    try:
        until(lambda: "there is no snapshot yet" in process.log_tail(), WAIT_S)
        writer.write(FIRST)
        until(lambda: '"version":1' in process.log_tail(), WAIT_S)
        assert process.stop(signal.SIGINT) == 0
    finally:
        process.stop()


def test_a_start_that_cannot_be_read_is_refused_with_what_would_do(flags: tuple[str, ...]) -> None:
    done = tail("--since", "yesterday", *flags)
    assert done.returncode == 2
    assert "--since is 'yesterday'; expected a version (812), an age" in done.stderr
