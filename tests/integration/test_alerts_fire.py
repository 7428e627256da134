"""Every alert fires, every panel has values and every metric is there, on the demo's fleet with faults, in one run.

Real Prometheus scrapes real processes. How long an expression must hold before it is told (`for`) is promtool's to say
(tests/contract/test_infra_alerts.py); here it is whether what happens is seen at all.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from alert_files import ALERTS, PANELS
from alert_run import PARTS, TEAM, AlertRun
from collector import batch
from headrace.infra.fleet.commands import Heal, Silence, Slow
from headrace.infra.gateway_engine.behaviour import Fault
from headrace.schemas.codec import encode
from headrace.schemas.overrides import WHOLE_FLEET, Override, OverrideKind
from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Outcomes, Vantage
from metric_page import documented
from prometheus_tools import program

pytestmark = [pytest.mark.embedded, pytest.mark.slow, pytest.mark.timeout(600)]

BROKEN = """
import headrace.solver.core.policies as policies
def plan(*_):
    raise ArithmeticError("a fault of this program")
policies.policy_named = lambda name: plan
import headrace.solver.core.tick as tick
tick.policy_named = policies.policy_named
from headrace.infra.cli import main
main()
"""
FLOOD = 20_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AlertRun]:
    """The whole run; what is asserted of it is below."""
    with ExitStack() as stack:
        found = AlertRun(program("prometheus"), tmp_path_factory.mktemp("alerts"), stack)
        found.start()
        _all_is_well(found)
        _one_of_a_pool_fails_its_requests(found)
        _a_gateways_engines_fail(found)
        _engines_are_away(found)
        _an_operator_freezes_all(found)
        _a_broken_solver_takes_over(found)
        _a_worker_is_far_behind(found)
        _nothing_is_heard_and_then_no_broker(found)
        yield found


def _all_is_well(run: AlertRun) -> None:
    streams = {name for name in PANELS if "Time to first token" in name or "Time between tokens" in name}
    run.until(lambda: streams <= run.told, "streams have been timed")
    # What moved while it started counts for a minute.
    run.until(lambda: not run.firing(), "no alert fires while all is well", timeout_s=150.0)


def _one_of_a_pool_fails_its_requests(run: AlertRun) -> None:
    """Four engines of a model of their own, since the demo's stand alone at their sites and have no peers."""
    like = run.session.options.scenario.engines[0].spec
    specs = [replace(like, engine_id=f"pool-{i}", models=("pooled",)) for i in range(4)]
    run.put(run.topics["fleet"].name, [(spec.key, encode(spec)) for spec in specs])
    status, told_ms = EngineStatus(Health.HEALTHY, 1, 1, 1, 0.0, 0.0, 0.0), time.time_ns() // 1_000_000

    def told() -> bool:
        nonlocal told_ms
        now_ms = time.time_ns() // 1_000_000
        if now_ms - told_ms >= 1_000:
            signals = [
                EngineSignals(
                    spec.engine_id,
                    "pool",
                    Vantage.ENGINE,
                    told_ms,
                    now_ms,
                    (),
                    status,
                    outcomes=(Outcomes("pooled", 5, 5) if spec is specs[0] else Outcomes("pooled", 10, 0),),
                )
                for spec in specs
            ]
            told_ms = now_ms
            run.put(run.topics["signals.engine"].name, [(one.key, encode(one)) for one in signals])
        return run.fires("HeadraceEngineFailing")

    run.until(told, "HeadraceEngineFailing fires")
    run.put(run.topics["fleet"].name, [(spec.key, None) for spec in specs])


def _a_gateways_engines_fail(run: AlertRun) -> None:
    run.callers.behave(b=Fault.STATUS_503, c=Fault.STATUS_429)
    run.callers.pause_s = 0.1
    run.session.do(Slow("engine-a", 1.6))
    _refused(run, 1)
    run.until_fired("HeadraceEjections", "HeadraceRetryBudgetExhausted")


def _engines_are_away(run: AlertRun) -> None:
    """Drain one engine of three, so that what is left is too little, and silence another; then take both back."""
    now_ms = time.time_ns() // 1_000_000
    drain = Override(OverrideKind.DRAIN, "engine-b", "ann", "driver upgrade", now_ms, now_ms + 600_000)
    run.put(run.topics["fleet"].name, [(drain.key, encode(drain))])
    run.session.do(Silence("engine-c"))
    run.until_fired("HeadraceShedding", "HeadraceStaleEngines")
    _refused(run, 2)
    run.until_fired("HeadraceDeadLetters")
    run.put(run.topics["fleet"].name, [(drain.key, None)])
    run.callers.behave(c=Fault.STATUS_503)
    run.session.do(Heal("engine-c"))
    run.until_fired("HeadraceCoverageLow", "HeadraceMovedTrafficHigh", "HeadracePanic")


def _refused(run: AlertRun, number: int) -> None:
    """Publish what cannot be used, and the telemetry of an engine that the fleet does not know."""
    run.exposition.text = b"no { exposition\n"
    run.put(run.topics["signals.engine"].name, [(b"engine-a", b"no signal")] * 3)
    at_ms = time.time_ns() // 1_000_000
    run.put(TEAM, [(b"", b"no metrics"), (b"", batch(1, number, at_ms))])


def _an_operator_freezes_all(run: AlertRun) -> None:
    now_ms = time.time_ns() // 1_000_000
    freeze = Override(OverrideKind.FREEZE, WHOLE_FLEET, "ann", "hands off", now_ms - 7_200_000, now_ms + 7_200_000)
    run.put(run.topics["fleet"].name, [(freeze.key, encode(freeze))])
    run.until_fired("HeadraceFreezeTooLong", "HeadraceSolverLowRung")
    run.put(run.topics["fleet"].name, [(freeze.key, None)])
    run.until(lambda: not run.query("headrace_solver_overrides > 0"), "the freeze is over")


def _a_broken_solver_takes_over(run: AlertRun) -> None:
    sets = {"solver.leader_election": "false", "solver.metrics_port": str(run.other_port)}
    broken = run.child("solver", sets, sys.executable, "-c", BROKEN, "solver", log="solver-broken")
    run.until_fired("HeadracePublishFailing", "HeadraceSolverFault")
    run.worker("solver").stop(timeout_s=5.0)
    broken.kill()
    run.until_fired("HeadraceNoSolver", "HeadraceTargetDown")


def _a_worker_is_far_behind(run: AlertRun) -> None:
    """Start a solver again, and the streams behind a flood: what it reads first is how far behind it is."""
    run.worker("solver").start()
    run.worker("streams").stop(timeout_s=5.0)
    status = EngineStatus(Health.HEALTHY, 1, 1, 1, 0.0, 0.0, 0.0)
    old = EngineSignals("engine-a", "flood", Vantage.ENGINE, 0, 1_000, (), status)
    run.put(run.topics["signals.engine"].name, [(old.key, encode(old))] * FLOOD)
    run.worker("streams").start()
    run.until_fired("HeadraceWorkerLag")
    run.until(lambda: bool(run.query("sum(headrace_solver_leads) == 1")), "a solver leads again")


def _nothing_is_heard_and_then_no_broker(run: AlertRun) -> None:
    run.until(lambda: not run.query("sum(headrace_streams_lag_signals) > 500"), "the flood is folded")
    run.until(lambda: run.exported() == run.exported(), "every process answers")
    run.names = run.exported()
    run.lives = False
    run.until_fired("HeadraceWatermarkStuck", "HeadraceTelemetryLost", in_s=40.0)
    run.session._broker.stop()
    run.until_fired("HeadraceGatewayWeightsNotFresh", "HeadraceGatewayCannotReachKafka")
    run.until_fired("HeadraceSnapshotOld", in_s=20.0)


def test_every_alert_fires_on_what_it_is_for(run: AlertRun) -> None:
    assert run.fired == ALERTS.keys()


def test_every_panel_has_values(run: AlertRun) -> None:
    missing = sorted(PANELS.keys() - run.told)
    assert not missing, missing


@pytest.mark.parametrize("part", PARTS)
def test_a_process_shows_the_metrics_that_are_documented_and_no_others(run: AlertRun, part: str) -> None:
    assert run.names[part] == documented()[part].keys()
