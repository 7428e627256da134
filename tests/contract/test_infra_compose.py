"""What the compose file names exists: commands, files, images' versions, scrape targets, rules, dashboards."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from headrace.infra.brokers.kafka_jars import jars_folder
from headrace.infra.cli import headrace
from headrace.infra.configuration.config import load_with_origins

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("image") == "headrace:local"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_ours_runs_a_command_that_exists_with_arguments_that_it_takes(name: str) -> None:
    group: click.Command = headrace
    context = click.Context(headrace)
    arguments = list(OURS[name]["command"])
    while isinstance(group, click.Group):
        command = group.get_command(context, arguments.pop(0))
        assert command is not None
        group = command
        context = click.Context(group, parent=context)
    assert group.make_context(name, arguments) is not None


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_ours_is_configured_by_settings_that_exist(name: str) -> None:
    config = load_with_origins(None, {}, OURS[name]["environment"]).config
    assert config.kafka.bootstrap_servers in _inside_addresses()


def test_the_broker_is_the_version_that_the_tests_run_on() -> None:
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{jars_folder().name.rpartition('-')[0]}"


def test_services_depend_on_services_that_exist() -> None:
    wanted = {name for service in SERVICES.values() for name in service.get("depends_on", ())}
    assert wanted <= set(SERVICES)


def test_mounted_files_and_the_dockerfile_exist() -> None:
    mounts = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    for mount in mounts:
        assert mount in COMPOSE["volumes"] or (INFRA / mount).exists(), mount
    for service in OURS.values():
        assert (INFRA / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_ports_are_published_on_the_loopback_address_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_dockerfile_copies_what_exists_and_what_its_ignore_file_lets_through() -> None:
    text = (INFRA / "Dockerfile").read_text("utf-8")
    copied = [source for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for source in line.split()[:-1]]
    allowed = (INFRA / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for source in copied:
        assert (INFRA.parent / source).exists(), source
        assert f"!{source}" in allowed


def test_prometheus_scrapes_services_that_exist() -> None:
    config = yaml.safe_load((INFRA / "prometheus/prometheus.yml").read_text("utf-8"))
    targets = [t for job in config["scrape_configs"] for group in job["static_configs"] for t in group["targets"]]
    assert {target.partition(":")[0] for target in targets} <= set(SERVICES)


def test_what_prometheus_scrapes_of_ours_is_where_its_settings_put_it() -> None:
    config = yaml.safe_load((INFRA / "prometheus/prometheus.yml").read_text("utf-8"))
    for job in config["scrape_configs"]:
        part = job["job_name"].removeprefix("headrace-")
        section = getattr(load_with_origins(None, {}, OURS[part]["environment"]).config, part)
        assert job["static_configs"] == [{"targets": [f"{part}:{section.metrics_port}"]}]
        assert section.metrics_host == "0.0.0.0"  # noqa: S104 - inside the network of the containers


def test_prometheus_finds_its_rules() -> None:
    config = yaml.safe_load((INFRA / "prometheus/prometheus.yml").read_text("utf-8"))
    for name in config["rule_files"]:
        assert f"./prometheus/{name}:/etc/prometheus/{name}:ro" in SERVICES["prometheus"]["volumes"]


def test_grafana_asks_prometheus_where_it_is_and_finds_its_dashboards() -> None:
    sources = yaml.safe_load((INFRA / "grafana/provisioning/datasources/prometheus.yaml").read_text("utf-8"))
    providers = yaml.safe_load((INFRA / "grafana/provisioning/dashboards/headrace.yaml").read_text("utf-8"))
    (source,) = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    folder = providers["providers"][0]["options"]["path"]
    assert f"./grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]
    for board in (INFRA / "grafana/dashboards").glob("*.json"):
        panels = json.loads(board.read_text("utf-8"))["panels"]
        assert {panel["datasource"]["uid"] for panel in panels} == {source["uid"]}, board.name


def _inside_addresses() -> set[str]:
    listeners = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    return {listener.partition("://")[2] for listener in listeners if listener.startswith("INSIDE")}
