"""The command without a broker: what it is given wrongly, what it lists, and the schema that it prints."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra.cli import headrace
from headrace.infra.command_line.json_schemas import schema_named
from headrace.infra.commands.doctor import reserve_s
from headrace.infra.configuration.config import Config
from headrace.infra.doctor.core.checks import check_names
from headrace.infra.doctor.core.picture import Unread
from headrace.infra.doctor.gather.gather import lost_since
from headrace.infra.doctor.gather.time_left import TimeLeft
from headrace.schemas.bus.settings import KafkaSettings

NOWHERE = "127.0.0.1:1"


def doctor(*args: str) -> Result:
    return CliRunner().invoke(headrace, ("doctor", *args))


def test_a_configuration_that_cannot_be_used_is_told_as_findings_all_at_once() -> None:
    done = doctor("--set", "solver.perid_ms=5", "--set", "streams.grace_ms=-1", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["status"], found["healthy"]) == (2, 2, False)
    assert {each["check"] for each in found["findings"]} == {"settings"}
    first, second = (each["sentence"] for each in found["findings"])
    assert first.startswith("solver.perid_ms: no such setting; the nearest is period_ms")
    assert second.startswith("streams.grace_ms is '-1'")


def test_an_option_that_no_client_takes_is_a_finding_of_the_settings() -> None:
    done = doctor("--set", "kafka.options.ssl.ca.loction=x", "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert done.exit_code == 2
    assert found["check"] == "settings"
    assert "'ssl.ca.loction' is no option of librdkafka; the nearest is ssl.ca.location" in found["sentence"]


def test_a_check_that_there_is_not_is_wrong_usage_with_the_nearest_name() -> None:
    done = doctor("--only", "topics,topcs")
    assert done.exit_code == 2
    assert "--only is 'topcs'; the nearest is topics" in done.stderr


def test_a_broker_that_is_not_there_is_a_finding_with_the_way_to_one() -> None:
    done = doctor("--bootstrap", NOWHERE, "--timeout", "10", "--json")
    assert done.stdout, (done.exit_code, done.exception, done.stderr)
    (found,) = json.loads(done.stdout)["findings"]
    assert done.exit_code == 2
    assert found["sentence"].startswith(f"{NOWHERE} does not answer: ")
    assert found["mend"][0] == "headrace broker up"


@pytest.mark.parametrize("only", ["topics", "lag"])
def test_no_broker_is_no_health_whatever_is_asked_for(only: str) -> None:
    done = doctor("--bootstrap", NOWHERE, "--timeout", "1", "--only", only)
    assert done.exit_code == 2
    assert done.stdout.startswith("FAULT    brokers: ")


def test_it_lists_every_check_with_what_it_looks_at() -> None:
    lines = doctor("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(check_names())
    assert all(line.endswith(".") for line in lines)


def test_the_schema_is_the_published_one() -> None:
    published = Path(__file__).parents[3] / "infra/json-schemas/doctor.schema.json"
    assert json.loads(doctor("--schema").stdout) == json.loads(published.read_text("utf-8")) == schema_named("doctor")


@pytest.mark.parametrize(("timeout_s", "kept_s"), [(1.0, 0.2), (10.0, 2.0), (30.0, 5.0), (600.0, 5.0)])
def test_a_part_of_the_time_is_kept_for_judging_and_letting_go(timeout_s: float, kept_s: float) -> None:
    assert reserve_s(timeout_s) == pytest.approx(kept_s)


def test_where_something_could_not_be_read_it_is_asked_whether_the_broker_is_still_there() -> None:
    config, unread = Config(kafka=KafkaSettings(bootstrap_servers=NOWHERE)), (Unread("records of x", "refused"),)
    assert (lost_since(config, unread, TimeLeft(30.0)) or "").startswith("it answered, and no longer does: ")
    assert lost_since(config, (), TimeLeft(30.0)) is None
