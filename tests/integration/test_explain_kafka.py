"""`headrace explain`, `what-if` and `tail --diff` as processes, over what a real solver wrote on a real broker."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.weights import PPM
from solver_desk import WAIT_S, Desk, EarlyReader, Solver, until, weights_of

HEADRACE = str(Path(sys.executable).with_name("headrace"))


pytestmark = pytest.mark.embedded


@pytest.fixture
def desk(embedded_broker: Broker) -> Iterator[Desk]:
    topics = fresh_topics()
    apply_topics(embedded_broker.kafka, topics)
    made = Desk(embedded_broker.kafka, topics)
    yield made
    made.stop()


def ask(desk: Desk, *typed: str) -> str:
    where = ("--bootstrap", desk.kafka.bootstrap_servers, "--set", f"topics.prefix={desk.topics.prefix}")
    done = subprocess.run((HEADRACE, *typed, *where), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_weight_is_explained_an_edit_comes_true_and_the_move_is_told_with_its_cause(
    desk: Desk, tmp_path: Path
) -> None:
    solver, reader = (
        Solver(desk, tmp_path / "log", "solver.leader_election=false"),
        EarlyReader(desk.kafka, desk.weights),
    )
    desk.start()
    solver.start()

    def share() -> int:
        reader.read(0.1)
        return weights_of(reader.snapshots[-1])["B"].get("e-b", 0) if reader.snapshots else 0

    try:
        until(lambda: 0 < share() < PPM, WAIT_S, solver.log_tail)
        first = json.loads(ask(desk, "explain", "B", "e-b", "--json"))
        assert first["computed_again"]
        assert first["inputs_proved"]
        assert first["route"] == "B|m|default"
        *parts, whole = first["terms_ms"].values()
        assert sum(parts) == pytest.approx(whole, abs=1e-6)
        assert whole == pytest.approx(first["route_marginal_ms"], abs=1e-6)
        expected = json.loads(ask(desk, "what-if", "--add-replicas", "e-b=1", "--json"))
        (promised,) = (
            s["after_ppm"] for s in expected["shares"] if (s["route"], s["engine_id"]) == ("B|m|default", "e-b")
        )
        assert promised > share() + 0.1 * PPM
        desk.ready["b"] = 2
        until(lambda: abs(share() - promised) <= 0.05 * PPM, WAIT_S, solver.log_tail)
        lines = [
            json.loads(line)
            for line in ask(desk, "tail", "--diff", "--json", "--no-follow", "--since", "5m").splitlines()
        ]
        moves = [move for line in lines for move in line["moves"] if move["route"] == "B|m|default"]
        assert "e-b counts 200 RPS of capacity, 100 before" in [move["cause"] for move in moves]
        then = json.loads(ask(desk, "explain", "B", "e-b", "--json", "--at", str(first["version"])))
        assert (then["version"], then["weight_ppm"], then["terms_ms"]) == (
            first["version"],
            first["weight_ppm"],
            first["terms_ms"],
        )
        decided = json.loads(ask(desk, "tail", "decisions", "--no-follow", "--json", "--since", "5m").splitlines()[-1])
        assert decided["version"] > first["version"]
    finally:
        solver.stop()
        reader.close()
