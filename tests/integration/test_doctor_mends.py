"""What the doctor names is run as it is printed, and the fault is gone: the command itself, on real brokers."""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin._resource import ResourceType

from conftest import fresh_topics
from doctor_broker import config_for, create_topics, publish
from doctor_system import System, healthy_at
from headrace.infra.brokers import start_broker
from headrace.infra.brokers.apache import Login
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.doctor.gather.gather import setup_of
from headrace.infra.processes.child import ChildProcess
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind
from headrace.schemas.topics import SHADOW, SIGNALS_ENGINE, STATE_NETWORK, WEIGHTS, TopicSettings, topic_table
from headrace.solver.clocks import wall_clock_ms
from solver_desk import until

HEADRACE = str(Path(sys.executable).with_name("headrace"))
WAIT_S = 90.0
MINUTE_MS = 60_000


def flags_for(broker: Broker, topics: TopicSettings, *settings: str) -> tuple[str, ...]:
    given = (f"topics.prefix={topics.prefix}", f"topics.partitions={topics.partitions}", *settings)
    sets = [part for each in (f"kafka.broker={broker.kafka.broker}", *given) for part in ("--set", each)]
    return ("--bootstrap", broker.kafka.bootstrap_servers, *sets)


def doctor(flags: Sequence[str], *more: str) -> dict[str, Any]:
    """Run the command; its exit status is what its report says."""
    done = CliRunner().invoke(headrace, ("doctor", "--json", *more, *flags))
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (found["status"], "")
    return found


def said(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["check"], each["subject"]) for each in report["findings"]]


def commands(report: dict[str, Any], check: str, subject: str) -> list[str]:
    (found,) = [each for each in report["findings"] if (each["check"], each["subject"]) == (check, subject)]
    return list(found["mend"])


def run(command: str) -> None:
    """Run a command as it was printed."""
    words = shlex.split(command)
    assert words[0] == "headrace"
    done = CliRunner().invoke(headrace, words[1:])
    assert done.exit_code == 0, (done.output, done.exception)


def planted(broker: Broker, topics: TopicSettings, *overrides: OverrideKind) -> System:
    system = healthy_at(wall_clock_ms(), setup_of(config_for(broker.kafka, topics)))
    for kind in overrides:
        target = WHOLE_FLEET if kind is OverrideKind.FREEZE else "engine-b"
        until_ms = system.now_ms + MINUTE_MS * 5
        system.overrides.append(Override(kind, target, "ann", "an upgrade", system.now_ms - 60 * MINUTE_MS, until_ms))
    return system


def test_topics_apply_mends_what_it_is_named_for(broker: Broker) -> None:
    topics = fresh_topics()
    system, flags = planted(broker, topics), flags_for(broker, topics)
    system.missing.add(SHADOW)
    system.configs = {
        WEIGHTS: {"cleanup.policy": "delete"},
        SIGNALS_ENGINE: {"retention.ms": "3600000", "message.timestamp.type": "CreateTime"},
    }
    create_topics(broker.kafka, system)
    table, only = topic_table(topics), ("--only", "topics,history")
    before = doctor(flags, *only)
    assert sorted(said(before)) == sorted(
        [
            ("history", table[SIGNALS_ENGINE].name),
            ("topics", table[SIGNALS_ENGINE].name),
            ("topics", table[SHADOW].name),
            ("topics", table[WEIGHTS].name),
        ]
    )
    named = {command for check, subject in said(before) for command in commands(before, check, subject)}
    assert named == {shlex.join(("headrace", "topics", "apply", *flags))}
    run(named.pop())
    # A broker tells of a new topic before all its parts lead, and what cannot be read is no health.
    until(lambda: doctor(flags, *only)["healthy"], WAIT_S)


@pytest.mark.embedded
def test_overrides_are_taken_back_and_prolonged_as_it_says(embedded_broker: Broker) -> None:
    topics = fresh_topics()
    system = planted(embedded_broker, topics, OverrideKind.DRAIN, OverrideKind.FREEZE)
    flags = flags_for(embedded_broker, topics)
    create_topics(embedded_broker.kafka, system)
    publish(embedded_broker.kafka, system)
    before = doctor(flags, "--only", "freeze,overrides")
    assert sorted(said(before)) == [("freeze", "fleet"), ("freeze", "fleet"), ("overrides", "engine-b")]
    (in_force, _) = [each for each in before["findings"] if each["check"] == "freeze"]
    run(in_force["mend"][0])
    assert said(doctor(flags, "--only", "freeze,overrides")) == [("overrides", "engine-b")]
    (longer,) = commands(before, "overrides", "engine-b")
    assert longer.startswith("headrace drain engine-b --reason 'an upgrade' --for 2h ")
    run(f"{longer} --force")  # no tick can be computed again here, so what comes of it cannot be told
    assert doctor(flags, "--only", "freeze,overrides")["healthy"]


@pytest.fixture
def started() -> Iterator[list[ChildProcess]]:
    """Processes that end with the test."""
    processes: list[ChildProcess] = []
    yield processes
    for process in processes:
        process.stop()


@pytest.mark.apache
def test_a_worker_and_a_solver_that_are_started_as_it_says_work_off_the_lag(
    apache_broker: Broker, tmp_path: Path, started: list[ChildProcess]
) -> None:
    topics = fresh_topics()
    system = planted(apache_broker, topics)
    more = (f"streams.group_id={topics.prefix}streams", f"streams.data_dir={tmp_path / 'faust' / 'data'}")
    flags = flags_for(apache_broker, topics, *more)
    create_topics(apache_broker.kafka, system)
    for _ in range(3):  # more than what counts as few
        publish(apache_broker.kafka, system)
    only = ("--only", "workers,lag")
    before = doctor(flags, *only)
    assert said(before)[:2] == [("workers", "streams"), ("workers", "solver")]
    assert {check for check, _ in said(before)[2:]} == {"lag"}
    for worker in ("streams", "solver"):
        (command,) = commands(before, "workers", worker)
        words = shlex.split(command)
        started.append(ChildProcess((HEADRACE, *words[1:]), tmp_path / f"{worker}.log"))
        started[-1].start()
    until(lambda: doctor(flags, *only)["healthy"], WAIT_S, lambda: str(doctor(flags, *only)["findings"]))


@pytest.fixture
def guarded_broker() -> Iterator[Broker]:
    """Kafka with an authoriser: `admin` may do all, `reader` what it is granted."""
    admin = Login("admin", "admin-word")
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    users = f'username="admin" password="{admin.password}" user_admin="{admin.password}" user_reader="reader-word"'
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",  # the controller's own listener asks nobody who they are
        "listener.name.client.plain.sasl.jaas.config": f"{plain} required {users};",
    }
    with start_broker("apache", login=admin, properties=properties) as broker:
        yield broker


@pytest.mark.apache
def test_missing_permissions_are_found_and_what_it_grants_is_enough(guarded_broker: Broker) -> None:
    topics = fresh_topics()
    apply_topics(guarded_broker.kafka, topics)
    table, admin = topic_table(topics), admin_client(guarded_broker.kafka)
    group = f"{topics.prefix}streams"
    for topic in table.values():
        if topic.role not in (WEIGHTS, STATE_NETWORK):
            grant(admin, "topic", topic.name, ("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"))
    grant(admin, "topic", table[WEIGHTS].name, ("READ", "DESCRIBE", "DESCRIBE_CONFIGS"))
    login = ("sasl.username=reader", "sasl.password=reader-word", "security.protocol=SASL_PLAINTEXT")
    options = [f"kafka.options.{each}" for each in (*login, "sasl.mechanism=PLAIN")]
    flags = flags_for(guarded_broker, topics, f"streams.group_id={group}", *options)
    lacking = [
        ("permissions", table[STATE_NETWORK].name),
        ("permissions", table[WEIGHTS].name),
        ("permissions", group),
        ("permissions", f"{table[WEIGHTS].name}.leader"),
    ]
    # A broker answers for a grant before it heeds it.
    until(lambda: sorted(said(doctor(flags, "--only", "permissions"))) == sorted(lacking), WAIT_S)
    before = doctor(flags, "--only", "permissions")
    sentences = {each["subject"]: each["sentence"] for each in before["findings"]}
    assert sentences[table[WEIGHTS].name] == f"User:reader may not WRITE topic {table[WEIGHTS].name}"
    assert sentences[table[STATE_NETWORK].name].startswith("User:reader may not READ, WRITE, DESCRIBE topic")
    assert "reader-word" not in json.dumps(before)
    for check, subject in said(before):
        for command in commands(before, check, subject):
            granted(admin, command)
    # What it may see now it may see in full, but for settings: that is a warning of its own.
    until(lambda: not faults(doctor(flags, "--only", "permissions")), WAIT_S)


def faults(report: dict[str, Any]) -> list[str]:
    return [each["sentence"] for each in report["findings"] if each["severity"] == "FAULT"]


def granted(admin: AdminClient, command: str) -> None:
    """Do what a `kafka-acls --add` says."""
    words = shlex.split(command)
    assert words[0] == "kafka-acls"
    assert words[words.index("--allow-principal") + 1] == "User:reader"
    operations = [words[at + 1].upper() for at, word in enumerate(words) if word == "--operation"]
    kind = "topic" if "--topic" in words else "group"
    grant(admin, kind, words[words.index(f"--{kind}") + 1], operations)


def grant(admin: AdminClient, kind: str, name: str, operations: Sequence[str]) -> None:
    bindings = [
        AclBinding(
            ResourceType[kind.upper()],
            name,
            ResourcePatternType.LITERAL,
            "User:reader",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for future in admin.create_acls(bindings).values():
        future.result(timeout=30)
