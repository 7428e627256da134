"""What the deployment files say holds: valid manifests and units, commands and settings that exist, times that fit."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from headrace.infra.configuration.config import Config, load_with_origins
from headrace.infra.console.app import OPEN_PATHS
from headrace.streams.departure import STOP_S
from written_commands import refused

DEPLOY = Path(__file__).parents[2] / "infra" / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
VERSIONS = ("1.30", "1.33")
"""The API's, oldest and newest that the manifests are held to."""
ANSWERS = {"gateway": {"/healthz", "/readyz", "/metrics"}, "console": set(OPEN_PATHS)}
BUILT_IN = {"Kustomization", "Component"}


def manifests() -> list[dict[str, Any]]:
    files = sorted(KUBERNETES.glob("*/*.yaml"))
    found = [each for file in files for each in yaml.safe_load_all(file.read_text("utf-8"))]
    return [each for each in found if each.get("kind", "Kustomization") not in BUILT_IN and "apiVersion" in each]


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in manifests() if each["kind"] == kind}


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for each in manifests():
        if each["kind"] in ("Deployment", "Job"):
            yield each["metadata"]["labels"]["app.kubernetes.io/component"], each["spec"]["template"]["spec"]


PODS = dict(pods())


def configuration(env: dict[str, str], overlay: str = "base") -> Config:
    return load_with_origins(KUBERNETES / overlay / "headrace.toml", {}, env).config


def environment(pod: dict[str, Any]) -> dict[str, str]:
    """Give the variables; what a Secret holds is `x`."""
    (container,) = pod["containers"]
    return {each["name"]: each.get("value", "x") for each in container["env"] if each["name"] != "HEADRACE_CONFIG"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_valid_for_kubernetes_to_the_last_key(version: str) -> None:
    assert len(manifests()) > 10
    for each in manifests():
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("part", sorted(PODS))
def test_a_pod_runs_a_command_that_exists_with_settings_that_exist(part: str) -> None:
    pod = PODS[part]
    (container,) = pod["containers"]
    assert refused(container["args"]) is None
    for overlay in ("base", "example"):
        config = configuration(environment(pod), overlay)
        assert config.kafka.options["sasl.password"] == "x"


@pytest.mark.parametrize("part", sorted(PODS))
def test_a_pod_is_not_root_writes_only_to_empty_volumes_and_takes_no_variables_of_services(part: str) -> None:
    pod = PODS[part]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["enableServiceLinks"] is False
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    empty = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == empty
    assert "memory" in container["resources"]["limits"]
    dockerfile = (DEPLOY.parent / "Dockerfile").read_text("utf-8")
    assert re.findall(r"^USER (.+)$", dockerfile, re.MULTILINE) == [str(pod["securityContext"]["runAsUser"])]


def test_a_service_s_variables_would_be_refused_as_settings_which_is_why_there_are_none() -> None:
    assert any(name.startswith("headrace-") for name in named("Service"))
    with pytest.raises(Exception, match="HEADRACE_GATEWAY_PORT_80_TCP"):
        configuration({"HEADRACE_GATEWAY_PORT_80_TCP": "tcp://10.0.0.1:80"})


@pytest.mark.parametrize("part", sorted(PODS.keys() - {"topics"}))
def test_probes_ask_what_the_process_answers_where_its_settings_put_it(part: str) -> None:
    (container,) = PODS[part]["containers"]
    config = configuration({})
    section = getattr(config, part)
    port = section.port if part in ANSWERS else section.metrics_port
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert set(ports.values()) == {port}
    probes = [container[name]["httpGet"] for name in container if name.endswith("Probe")]
    assert {"startupProbe", "livenessProbe"} <= container.keys()
    for probe in probes:
        assert ports[probe["port"]] == port
        assert probe["path"] in ANSWERS.get(part, {"/metrics"})
    assert (section.host if part in ANSWERS else section.metrics_host) == "0.0.0.0"  # noqa: S104 - in a pod


def test_what_prometheus_is_told_to_scrape_is_the_metrics_port() -> None:
    config = configuration({})
    for name, each in named("Deployment").items():
        part = name.removeprefix("headrace-")
        notes = each["spec"]["template"]["metadata"].get("annotations", {})
        if part == "console":
            assert not notes
            continue
        port = config.gateway.port if part == "gateway" else getattr(config, part).metrics_port
        assert notes == {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}
    assert config.gateway.open_metrics


def stop_bounds() -> dict[str, float]:
    """Seconds that a process may take to end, by its own bounds."""
    config = configuration({})
    return {
        "streams": STOP_S,
        "solver": 10.0,
        "bridge": config.bridge.stop_wait_ms / 1000,
        "gateway": config.gateway.drain_s,
        "console": 5.0,
    }


@pytest.mark.parametrize("part", sorted(stop_bounds()))
def test_nobody_is_killed_before_its_own_bound_on_stopping(part: str) -> None:
    (container,) = PODS[part]["containers"]
    command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    assert PODS[part]["terminationGracePeriodSeconds"] >= stop_bounds()[part] + float(command[1]) + 5
    unit = parsed(DEPLOY / "systemd" / f"headrace-{part}.service")
    assert float(unit["Service"]["TimeoutStopSec"]) >= stop_bounds()[part] + 5


def test_whatever_has_several_replicas_has_a_disruption_budget_that_lets_one_go() -> None:
    budgets = named("PodDisruptionBudget")
    for name, each in named("Deployment").items():
        if each["spec"]["replicas"] > 1:
            assert budgets[name]["spec"]["maxUnavailable"] == 1
            assert budgets[name]["spec"]["selector"] == each["spec"]["selector"]
        else:
            assert name not in budgets  # it would keep a node from being emptied


def test_a_rolling_restart_of_workers_waits_longer_for_each_than_a_group_misses_a_dead_one() -> None:
    config = configuration({})
    for part in ("streams", "solver", "bridge"):
        assert named("Deployment")[f"headrace-{part}"]["spec"]["minReadySeconds"] * 1_000 > max(
            config.streams.session_timeout_ms, config.solver.leader_session_ms
        )


def test_secrets_are_referred_to_and_never_here() -> None:
    assert named("Secret") == {}
    page = (DEPLOY / "README.md").read_text("utf-8")
    for pod in PODS.values():
        (container,) = pod["containers"]
        refs = [e["valueFrom"]["secretKeyRef"] for e in container["env"] if "valueFrom" in e]
        names = {ref["name"] for ref in refs} | {v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        assert all(f"create secret generic {name} " in page for name in names)
    config = configuration({})
    assert "sasl.password" not in config.kafka.options


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_renders_the_example_with_every_name_resolved() -> None:
    done = subprocess.run(
        ("kubectl", "kustomize", str(KUBERNETES / "example")), capture_output=True, check=True, text=True
    )
    rendered = list(yaml.safe_load_all(done.stdout))
    maps = {each["metadata"]["name"] for each in rendered if each["kind"] == "ConfigMap"}
    assert {"Deployment", "Job", "Service", "PodDisruptionBudget"} <= {each["kind"] for each in rendered}
    for each in rendered:
        kubernetes_validate.validate(each, VERSIONS[-1], strict=True)
        if each["kind"] in ("Deployment", "Job"):
            volumes = each["spec"]["template"]["spec"]["volumes"]
            assert {v["configMap"]["name"] for v in volumes if "configMap" in v} <= maps


def parsed(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys of units have capitals
    parser.read_string(unit.read_text("utf-8"))
    return parser


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_that_exists_with_settings_that_exist_as_a_user_of_its_own(unit: Path) -> None:
    service = parsed(unit)["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert program == "/opt/headrace/bin/headrace"
    assert refused(arguments) is None
    given = [arguments[i + 1].partition("=") for i, word in enumerate(arguments) if word == "--set"]
    load_with_origins(None, {key: value for key, _, value in given}, {})
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("headrace", "yes", "strict")
    loaded = service.get("LoadCredential", "").partition(":")[0]
    assert re.findall(r"%d/(\S+)", service["ExecStart"]) == ([loaded] if loaded else [])
    assert service["Restart"] == "on-failure"


def test_every_process_of_the_pods_has_a_unit() -> None:
    assert {unit.stem.removeprefix("headrace-") for unit in UNITS} == PODS.keys() - {"topics"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units_as_they_are(tmp_path: Path) -> None:
    for unit in UNITS:
        # It wants the program to be there.
        text = unit.read_text("utf-8").replace("/opt/headrace/bin/headrace", shutil.which("true") or "/bin/true")
        (tmp_path / unit.name).write_text(text, "utf-8")
    paths = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(("systemd-analyze", "verify", *paths), capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "headrace" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
