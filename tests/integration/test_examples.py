"""The examples and the README's way from an empty broker to routed requests, as a newcomer walks it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from streams_run import Bus, Worker

from headrace.infra.brokers.contract import Broker
from headrace.infra.processes.child import ChildProcess
from headrace.schemas.topics import TopicSettings
from solver_desk import Desk, EarlyReader, Solver

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "infra/examples"
BIN = Path(sys.executable).parent


@pytest.mark.slow
def test_the_examples_lead_from_an_empty_broker_to_routed_requests(
    broker: Broker, topics: TopicSettings, tmp_path: Path
) -> None:
    bootstrap = broker.kafka.bootstrap_servers
    where = ("--bootstrap", bootstrap, "--prefix", topics.prefix)
    flags = (
        "--bootstrap",
        bootstrap,
        "--set",
        f"topics.prefix={topics.prefix}",
        "--set",
        f"kafka.broker={broker.kafka.broker}",
    )
    subprocess.run([BIN / "headrace", "fleet", "apply", EXAMPLES / "fleet.toml", *flags], check=True)
    worker = Worker(Bus(broker.kafka, topics), tmp_path)
    solver = Solver(Desk(broker.kafka, topics), tmp_path / "solver.log")
    engines = ChildProcess((sys.executable, str(EXAMPLES / "publish_signals.py"), *where), tmp_path / "publish.log")
    reader = EarlyReader(broker.kafka, f"{topics.prefix}weights")
    try:
        solver.start()
        engines.start()
        reader.until(lambda s: any(sum(t.weight_ppm for t in route.targets) for route in s.routes), timeout_s=60.0)
        command = [sys.executable, EXAMPLES / "route_requests.py", *where, "--count", "500"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    finally:
        reader.close()
        engines.stop()
        solver.stop()
        worker.stop()
    went = {line.split()[1]: int(line.split()[0]) for line in printed.splitlines()}
    assert sum(went.values()) == 500
    assert set(went) == {"engine-a", "engine-b"}
    assert not re.search("refused|SHED", printed)
