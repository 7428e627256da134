"""The one way in which processes show their metrics, and the page that names all of them."""

import math
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.settings import GatewaySettings
from headrace.infra.gateway.weights_source import FromMemory
from headrace.infra.metrics import Meter, MetricsPortError, counts_of
from headrace.infra.processes.ports import free_ports
from headrace.schemas.metric_table import Metric, NoCounts
from headrace.solver.metrics import TABLE as SOLVER
from headrace.solver.settings import SolverSettings
from headrace.streams.bridge.metrics import TABLE as BRIDGE
from headrace.streams.metrics import TABLE as STREAMS
from headrace.streams.publish.metrics import TABLE as SIDECAR
from metric_page import documented

TABLES = {"streams": STREAMS, "solver": SOLVER, "bridge": BRIDGE, "sidecar": SIDECAR}
WORDS = {"outcome", "reason", "step", "status", "rung", "stage", "tier", "protection", "kind", "result"}
BOUNDED = WORDS | {"topic", "source"}


@pytest.mark.parametrize("part", sorted(TABLES))
def test_every_metric_of_a_table_can_be_set_with_its_labels_and_is_shown(part: str) -> None:
    meter = Meter(part, TABLES[part])
    for each in TABLES[part]:
        set_it: Any = {"counter": meter.add, "gauge": meter.show, "histogram": meter.observe}[each.kind]
        set_it(each.name, 1, *each.labels)
    shown = generate_latest(meter.registry).decode()
    for each in TABLES[part]:
        assert f"# HELP headrace_{part}_{each.name} {each.says}" in shown
        assert set(each.labels) <= BOUNDED, "labels of bounded values alone"
        assert (each.kind == "counter") == each.name.endswith("_total")


@pytest.mark.parametrize("part", sorted(TABLES))
def test_the_page_has_each_process_table_row_by_row(part: str) -> None:
    rows = {each.name: (each.kind, each.labels, each.says) for each in TABLES[part]}
    assert documented()[part] == rows


def test_the_page_has_what_the_gateway_shows() -> None:
    running = Running(GatewaySettings(), Router(DataPlaneSettings(), "a"), lambda r, _s, _i: FromMemory(r), None)
    running.show_gauges(_Anything(), _Anything())
    shown = {
        family.name + ("_total" if family.type == "counter" else ""): family.documentation
        for family in running.metrics.registry.collect()
    }
    told = {f"headrace_gateway_{name}": says for name, (_, _, says) in documented()["gateway"].items()}
    from_kafka = {name for name in told if name.endswith(("snapshots_total", "reports_total"))}
    assert told == {**shown, **{name: told[name] for name in from_kafka}}
    assert len(from_kafka) == 2


class _Anything:
    def __getattr__(self, _name: str) -> int:
        return 0


def test_a_gauge_that_was_never_set_is_not_a_number_and_not_zero() -> None:
    meter = Meter("p", (Metric("a", "gauge", (), "says"), Metric("b", "gauge", ("kind",), "says")))
    assert math.isnan(meter.registry.get_sample_value("headrace_p_a") or 0.0)
    assert meter.registry.get_sample_value("headrace_p_b", {"kind": "x"}) is None


def test_a_series_that_is_over_becomes_zero_and_one_that_never_was_does_not_appear() -> None:
    meter = Meter("p", (Metric("b", "gauge", ("kind",), "says"),))
    meter.show_all("b", {("x",): 2.0})
    meter.show_all("b", {("y",): 3.0})
    assert [meter.registry.get_sample_value("headrace_p_b", {"kind": kind}) for kind in "xyz"] == [0.0, 3.0, None]


def test_they_are_served_on_their_port_until_they_are_not() -> None:
    meter, (port,) = Meter("streams", STREAMS), free_ports(1)
    end = meter.serve("127.0.0.1", port)
    try:
        meter.show("engines_known", 6)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            shown = answer.read().decode()
        assert "headrace_streams_engines_known 6.0" in shown
        assert "process_resident_memory_bytes" in shown
        taken = re.escape(f"127.0.0.1:{port}") + ".*solver.metrics_port"
        with pytest.raises(MetricsPortError, match=taken):
            counts_of("shadow", SOLVER, SolverSettings(metrics_port=port), section="solver")
    finally:
        end()


def test_without_a_port_nothing_is_counted() -> None:
    assert isinstance(counts_of("solver", SOLVER, SolverSettings()), NoCounts)


def test_processes_that_can_be_asked_have_the_same_two_settings() -> None:
    from headrace.infra.configuration.config import Config

    for part in TABLES:
        section = getattr(Config(), part)
        assert (section.metrics_port, section.metrics_host) == (0, "127.0.0.1")
    assert (Path(__file__).parents[3] / "infra/docs/metrics.md").is_file()
