"""The planted faults on the embedded broker: each is found there as in a picture.

Several are planted into one system, where they touch different things: a doctor finds them all at once. That each by
itself is the only thing found is shown without a broker.
"""

import json
import shlex
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.cimpl import NewTopic

from conftest import fresh_topics
from doctor_broker import config_for, create_topics, examined, publish
from doctor_faults import PLANTED
from doctor_planted import Planted
from doctor_system import healthy_at
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.configuration.config import Config
from headrace.infra.doctor.core.diagnosis import Report
from headrace.infra.doctor.gather.gather import setup_of
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.publisher import Published, Publisher
from headrace.solver.clocks import wall_clock_ms
from telemetry_inputs import records

pytestmark = pytest.mark.embedded

ALONE = ("fleet", "workers", "capacity", "load")
"""Checks of which a fault leaves others nothing to judge, or makes what they find worse."""
SAME_STATES = ("units", "coverage", "engines", "watermark")
SAME_TICKS = ("rung", "writers", "settings", "snapshot")


def touches(planted: Planted) -> str:
    """Name what a fault changes: of two that change the same, the second undoes the first."""
    if planted.check in SAME_STATES:
        return "states"
    return "ticks" if planted.check in SAME_TICKS else planted.check


def batches() -> Iterator[tuple[Planted, ...]]:
    """Give the faults that records and settings plant: the first of each thing touched, the second, and so on."""
    here = [planted for planted in PLANTED if planted.on == "broker"]
    yield from ((planted,) for planted in here if planted.check in ALONE)
    seen: Counter[str] = Counter()
    rounds: dict[int, list[Planted]] = {}
    for planted in here:
        if planted.check not in ALONE:
            rounds.setdefault(seen[touches(planted)], []).append(planted)
            seen[touches(planted)] += 1
    yield from (tuple(each) for each in rounds.values())


BATCHES = tuple(batches())


@pytest.fixture(scope="module")
def looked_at(embedded_broker: Broker) -> dict[int, tuple[Config, Report]]:
    """Give, by batch, what the doctor says of a system with all its faults."""
    found: dict[int, tuple[Config, Report]] = {}
    for number, batch in enumerate(BATCHES):
        config = config_for(embedded_broker.kafka, fresh_topics())
        system = healthy_at(wall_clock_ms(), setup_of(config))
        for planted in batch:
            planted.plant(system)
        create_topics(embedded_broker.kafka, system)
        publish(embedded_broker.kafka, system)
        found[number] = (config, examined(config, system.now_ms))
    return found


def test_a_healthy_system_on_a_broker_is_healthy(embedded_broker: Broker) -> None:
    config = config_for(embedded_broker.kafka, fresh_topics())
    system = healthy_at(wall_clock_ms(), setup_of(config))
    create_topics(embedded_broker.kafka, system)
    publish(embedded_broker.kafka, system)
    report = examined(config, system.now_ms)
    assert report.findings == ()
    assert report.status == 0


@pytest.mark.parametrize(
    ("batch", "planted"),
    [pytest.param(number, planted, id=planted.name) for number, batch in enumerate(BATCHES) for planted in batch],
)
def test_a_planted_fault_is_found_on_a_broker_with_its_mend(
    batch: int, planted: Planted, looked_at: dict[int, tuple[Config, Report]]
) -> None:
    config, report = looked_at[batch]

    def here(text: str) -> str:
        return text.replace("headrace.", config.topics.prefix)

    found = [each for each in report.findings if each.check == planted.check and here(planted.says) in each.sentence]
    assert len(found) == 1, [each.sentence for each in report.findings if each.check == planted.check]
    assert found[0].severity is planted.severity
    assert any(here(planted.mend) in command for command in found[0].mend)


def test_a_broker_that_takes_connections_and_says_nothing_is_a_finding_within_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = CliRunner().invoke(headrace, ("doctor", "--bootstrap", address, "--timeout", "1"))
    assert done.exit_code == 2
    assert done.stdout.startswith(f"FAULT    brokers: {address} does not answer: ")
    assert done.stdout.endswith("1 fault\n")


@pytest.fixture
def team_topic(embedded_broker: Broker) -> str:
    """A topic of a team's own with what a Telegraf writes of vLLM, dated now."""
    name, admin = fresh_topics().prefix + "metrics", admin_client(embedded_broker.kafka)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(timeout=60)
    publisher = Publisher(embedded_broker.kafka)
    for record in records("telegraf_json"):
        assert publisher.publish(name, record.key, record.value, wall_clock_ms()) == Published()
    assert publisher.close(30.0) == 0
    return name


def test_a_mapping_that_matches_nothing_is_mended_by_the_one_that_map_init_proposes(
    embedded_broker: Broker, team_topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("headrace.toml").write_text(
        f"[kafka]\nbootstrap_servers = '{embedded_broker.kafka.bootstrap_servers}'\nbroker = 'embedded'\n"
        f"[bridge.sources.team]\ntopic = '{team_topic}'\npreset = 'tgi'\ncarrier = 'telegraf_json'\n"
    )
    before = CliRunner().invoke(headrace, ("doctor", "--only", "telemetry", "--json"))
    (found,) = json.loads(before.stdout)["findings"]
    assert found["sentence"].startswith("bridge.sources.team: its mapping tgi matches nothing in ")
    test, init = found["mend"]
    assert CliRunner().invoke(headrace, shlex.split(test)[1:]).exit_code == 1
    assert CliRunner().invoke(headrace, shlex.split(init)[1:]).exit_code == 0
    sets = ("--set", "bridge.sources.team.mapping=mapping.yaml", "--set", "bridge.sources.team.preset=")
    after = CliRunner().invoke(headrace, ("doctor", "--only", "telemetry", "--json", *sets))
    (seldom,) = json.loads(after.stdout)["findings"]  # it fits; what is left is that it is scraped every 15 s
    (solver,) = seldom["mend"]
    assert solver.startswith("headrace solver ")
    assert solver.endswith("--set solver.expired_after_ms=45000")
    longer = ("--set", "solver.expired_after_ms=45000")
    assert CliRunner().invoke(headrace, ("doctor", "--only", "telemetry", *sets, *longer)).exit_code == 0
