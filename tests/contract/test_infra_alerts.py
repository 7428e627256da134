"""Each alert fires where it should and is silent where not, as Prometheus itself says."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from alert_files import ALERTS, INFRA, RULES
from prometheus_tools import program

S, T, B, G = "headrace_solver_", "headrace_streams_", "headrace_bridge_", "headrace_gateway_"


NAN = " ".join(["NaN"] * 41)


@dataclass(frozen=True)
class Case:
    """Series in promtool's notation, a sample every 15 s, and what holds after ten minutes."""

    fires: tuple[Mapping[str, str], ...]
    silent: tuple[Mapping[str, str], ...]


ALWAYS = "x40"
ENGINE = '{topic="signals.engine"}'
CASES: dict[str, Case] = {
    "HeadraceNoSolver": Case(
        ({f'{S}leads{{instance="a"}}': "0" + ALWAYS}, {"up": "1" + ALWAYS}),
        ({f'{S}leads{{instance="a"}}': "0" + ALWAYS, f'{S}leads{{instance="b"}}': "1" + ALWAYS},),
    ),
    "HeadraceSnapshotOld": Case(
        ({f"{S}snapshot_timestamp_seconds": "0+15x30 450x10"},),
        ({f'{S}snapshot_timestamp_seconds{{instance="b"}}': "0+15x40", f"{S}snapshot_timestamp_seconds": NAN},),
    ),
    "HeadraceSolverLowRung": Case(
        tuple(
            {f'{S}ticks_total{{status="{status}",rung="{rung}"}}': "0+30x40"}
            for status, rung in (
                ("HELD", "HOLD"),
                ("OPTIMAL", "SIFTED_UNSCALED"),
                ("PROPORTIONAL", "CAPACITY_WEIGHTED"),
            )
        ),
        (
            {f'{S}ticks_total{{status="OPTIMAL",rung="{rung}"}}': "0+30x40" for rung in ("DUAL", "SIFTED")}
            | {f'{S}ticks_total{{status="HELD",rung="HOLD"}}': "7" + ALWAYS},
        ),
    ),
    "HeadracePublishFailing": Case(
        tuple({f'{S}publishes_total{{outcome="{o}"}}': "0x30 1x10"} for o in ("FAILED", "FENCED", "UNSOUND")),
        ({f'{S}publishes_total{{outcome="COMMITTED"}}': "0+30x40", f'{S}publishes_total{{outcome="FENCED"}}': "1x40"},),
    ),
    "HeadraceSolverFault": Case(({f"{S}solve_faults_total": "0x30 1x10"},), ({f"{S}solve_faults_total": "3x40"},)),
    "HeadraceShedding": Case(
        ({f'{S}shed_rps{{tier="1"}}': "3x40"},),
        ({f'{S}shed_rps{{tier="1"}}': "0x40"}, {f'{S}shed_rps{{tier="1"}}': "0x37 3x3"}),
    ),
    "HeadraceMovedTrafficHigh": Case(
        ({f"{S}moved_rps_total": "0+100x40", f"{S}demand_rps": "250x40", f'{S}demand_rps{{instance="b"}}': NAN},),
        ({f"{S}moved_rps_total": "0+10x40", f"{S}demand_rps": "250x40"},),
    ),
    "HeadraceStaleEngines": Case(
        ({f'{S}stale_inputs{{kind="engine"}}': "1x40"},), ({f'{S}stale_inputs{{kind="ageing"}}': "1x40"},)
    ),
    "HeadraceTelemetryLost": Case(
        ({f"{S}signal_timestamp_seconds": "0+15x30 450x10"},), ({f"{S}signal_timestamp_seconds": "0+15x40"},)
    ),
    "HeadraceCoverageLow": Case(
        ({f"{S}coverage_least": "0.3x40", f'{S}coverage_least{{instance="b"}}': NAN},),
        ({f"{S}coverage_least": "0.9x40"}, {f"{S}coverage_least": "1x30 0.2x10"}),
    ),
    "HeadraceFreezeTooLong": Case(
        ({f'{S}override_age_seconds{{kind="FREEZE"}}': "3700x40"},),
        (
            {
                f'{S}override_age_seconds{{kind="DRAIN"}}': "9999x40",
                f'{S}override_age_seconds{{kind="FREEZE"}}': "60x40",
            },
        ),
    ),
    "HeadraceWorkerLag": Case(
        (
            {
                f"{T}lag_signals{ENGINE}": "5000x40",
                f'{T}signals_total{{topic="signals.engine",outcome="X"}}': "0+1500x40",
            },
            {f"{T}lag_signals{ENGINE}": "1x40"},
        ),
        (
            {
                f"{T}lag_signals{ENGINE}": "500x40",
                f'{T}signals_total{{topic="signals.engine",outcome="X"}}': "0+1500x40",
            },
        ),
    ),
    "HeadraceWatermarkStuck": Case(
        ({f"{T}watermark_timestamp_seconds{ENGINE}": "0+15x30 450x10"},),
        ({f"{T}watermark_timestamp_seconds{ENGINE}": "0+15x40"},),
    ),
    "HeadraceDeadLetters": Case(
        ({f'{T}refused_total{{topic="signals.engine",reason="R"}}': "0+1x40"}, {f"{B}dead_letters_total": "0+1x40"}),
        ({f"{B}dead_letters_total": "7x40", f'{T}refused_total{{topic="signals.engine",reason="R"}}': "9x40"},),
    ),
    "HeadraceRetryBudgetExhausted": Case(
        ({f'{G}retries_total{{result="budget_spent"}}': "0+1x40"}, {f"{S}retry_ratio": "0x40"}),
        ({f'{G}retries_total{{result="granted"}}': "0+1x40", f"{S}retry_ratio": "0.1x40"},),
    ),
    "HeadraceEjections": Case(
        ({f'{G}ejected{{engine="a",cause="ERRORS"}}': "1x40"},),
        ({f'{G}ejected{{engine="a",cause="ERRORS"}}': "0x35 1x5"},),
    ),
    "HeadraceEngineFailing": Case(
        ({f'{S}protected_engines{{protection="errors"}}': "1x40"},),
        ({f'{S}protected_engines{{protection="outlier"}}': "1x40"},),
    ),
    "HeadracePanic": Case(
        (
            {f'{G}decisions_total{{outcome="ROUTED",reason="PANIC"}}': "0+2x40"},
            {f'{G}ejected{{engine="{e}",cause="ERRORS"}}': "1x40" for e in "ab"}
            | {f'{G}weight{{model="m",class="c",engine="{e}"}}': "0.3x40" for e in "abc"},
        ),
        (
            {f'{G}ejected{{engine="a",cause="ERRORS"}}': "1x40"}
            | {f'{G}weight{{model="m",class="c",engine="{e}"}}': "0.3x40" for e in "abc"},
        ),
    ),
    "HeadraceGatewayWeightsNotFresh": Case(
        ({f'{G}weights_state{{state="FRESH"}}': "0x40"},), ({f'{G}weights_state{{state="FRESH"}}': "1x40"},)
    ),
    "HeadraceGatewayCannotReachKafka": Case(
        ({f"{G}source_problems_total": "0+1x40"}, {f'{G}reports_total{{result="failed"}}': "0+1x40"}),
        ({f"{G}source_problems_total": "3x40", f'{G}reports_total{{result="delivered"}}': "0+1x40"},),
    ),
    "HeadraceTargetDown": Case(({'up{job="headrace-solver"}': "0x40"},), ({'up{job="node"}': "0x40"},)),
}


def test_every_alert_has_its_cases() -> None:
    assert CASES.keys() == ALERTS.keys()


def test_each_alert_fires_where_it_should_and_is_silent_where_not(tmp_path: Path) -> None:
    tests: list[dict[str, Any]] = []
    for alert, case in CASES.items():
        for fires, series in [*((1, s) for s in case.fires), *((0, s) for s in case.silent)]:
            expression = (
                f'(count(count by (alertname) (ALERTS{{alertname="{alert}",alertstate="firing"}})) or vector(0))'
            )
            given = [{"series": name, "values": values} for name, values in series.items()]
            expected = [{"labels": "{}", "value": fires}]
            asked = [{"expr": expression, "eval_time": "10m", "exp_samples": expected}]
            tests.append(
                {"interval": "15s", "input_series": given, "promql_expr_test": asked, "name": f"{alert} {fires}"}
            )
    file = tmp_path / "alerts_test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": tests}), "utf-8")
    done = subprocess.run(
        (program("promtool"), "test", "rules", str(file)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_its_configuration_and_its_rules() -> None:
    done = subprocess.run(
        (program("promtool"), "check", "config", str(INFRA / "prometheus/prometheus.yml")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout
