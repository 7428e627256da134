"""`headrace explain`, `what-if`, `drain` and `tail --diff` over what a real solver wrote on a real broker."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.cli import headrace
from headrace.infra.provision import apply_topics
from headrace.schemas.weights import PPM
from solver_desk import WAIT_S, Desk, EarlyReader, Solver, until, weights_of

pytestmark = pytest.mark.embedded


@pytest.fixture
def desk(embedded_broker: Broker) -> Iterator[Desk]:
    topics = fresh_topics()
    apply_topics(embedded_broker.kafka, topics)
    made = Desk(embedded_broker.kafka, topics)
    yield made
    made.stop()


def run(desk: Desk, *typed: str) -> Result:
    """Run a command in this process: there are many, and each start of a process costs a second."""
    where = ("--bootstrap", desk.kafka.bootstrap_servers, "--set", f"topics.prefix={desk.topics.prefix}")
    return CliRunner().invoke(headrace, (*typed, *where))


def ask(desk: Desk, *typed: str) -> str:
    done = run(desk, *typed)
    assert done.exit_code == 0, f"{done.output}{done.exception}"
    return done.stdout


def outside_history(desk: Desk, version: int) -> None:
    """Decisions go on; what history does not hold is refused with what it holds, and what is still to come as that."""
    decided = json.loads(ask(desk, "tail", "decisions", "--no-follow", "--json", "--since", "5m").splitlines()[-1])
    assert decided["version"] > version
    for at in ("10m", "999999"):
        said = str(run(desk, "explain", "B", "e-b", "--at", at).exception)
        assert ": it holds version 1 of " in said
        assert " to version " in said
    assert "still to come" in str(run(desk, "explain", "B", "e-b", "--at", "2099-01-01T00:00Z").exception)


def while_frozen(desk: Desk) -> None:
    """While it is frozen each tells why nothing moves, and what would."""
    without = json.loads(ask(desk, "what-if", "--unfreeze", "--json"))
    assert without["edits"] == ["the freeze has ended"]
    assert without["before"]["demand_rps"] > 0.0
    held = ask(desk, "tail", "decisions", "--no-follow", "--since", "5m").splitlines()[-1]
    assert ", HELD since version " in held
    assert held.endswith(": hands off")
    lines = ask(desk, "tail", "--diff", "--json", "--no-follow", "--since", "5m").splitlines()
    changes = [change for line in lines if (change := json.loads(line)["status_change"]) is not None]
    assert (changes[-1]["before"], changes[-1]["after"]) == ("OPTIMAL", "HELD")


@pytest.fixture(autouse=True)
def handlers_as_they_were() -> Iterator[None]:
    """A tail answers signals in its own way; the tests after it do not want that."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_weight_is_explained_an_edit_comes_true_the_move_is_told_and_an_engine_drained_for_a_while(
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

    def used() -> set[str]:
        reader.read(0.1)
        return {name for shares in weights_of(reader.snapshots[-1]).values() for name in shares}

    def said() -> str:
        return reader.snapshots[-1].commit.sentence

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
        # The move may come with the tick that sees the replica or with one after it, which says since when.
        assert any(move["cause"].startswith("e-b counts 200 RPS of capacity, 100 ") for move in moves)
        then = json.loads(ask(desk, "explain", "B", "e-b", "--json", "--at", str(first["version"])))
        assert (then["version"], then["weight_ppm"], then["terms_ms"]) == (
            first["version"],
            first["weight_ppm"],
            first["terms_ms"],
        )
        outside_history(desk, first["version"])
        # 300 RPS are left for 250 without e-c, and 180 without e-b, which is refused with the numbers.
        refused = run(desk, "drain", "e-b", "--reason", "upgrade")
        assert refused.exit_code == 1
        assert "if e-b is drained, 70.0 of 250.0 RPS would be shed, 0.0 now" in str(refused.exception)
        ask(desk, "drain", "e-c", "--reason", "upgrade", "--author", "ann", "--for", "10m")
        until(lambda: "e-c" not in used(), WAIT_S, solver.log_tail)
        out = json.loads(ask(desk, "explain", "C", "e-c", "--json"))["excluded"]
        assert out["reason"] == "DRAINED"
        assert out["sentence"].startswith("drained by ann until ")
        assert out["sentence"].endswith(": upgrade")
        assert "override e-c: drain by ann until" in ask(desk, "fleet", "list")
        ask(desk, "undrain", "e-c")
        until(lambda: "e-c" in used(), WAIT_S, solver.log_tail)
        ask(desk, "freeze", "--reason", "hands off", "--author", "ann")
        until(lambda: bool(used()) and said().endswith(": hands off"), WAIT_S, solver.log_tail)
        while_frozen(desk)
        ask(desk, "unfreeze")
        until(lambda: bool(used()) and "RPS routed" in said(), WAIT_S, solver.log_tail)
    finally:
        solver.stop()
        reader.close()


def test_a_share_is_pinned_to_the_ppm_told_as_binding_and_as_a_cause_taken_back_and_replayed(
    desk: Desk, tmp_path: Path
) -> None:
    solver = Solver(desk, tmp_path / "log", "solver.leader_election=false")
    reader = EarlyReader(desk.kafka, desk.weights)
    desk.start()
    solver.start()

    def share(engine: str) -> int:
        reader.read(0.1)
        return weights_of(reader.snapshots[-1])["B"].get(engine, 0) if reader.snapshots else 0

    def acting() -> set[str]:
        reader.read(0.1)
        return {p.protection for p in reader.snapshots[-1].commit.protections}

    try:
        until(lambda: 0 < share("e-b") < PPM, WAIT_S, solver.log_tail)
        before = str(reader.snapshots[-1].commit.version)
        ask(desk, "pin", "B", "e-c", "--share", "30%", "--reason", "canary", "--author", "ann", "--for", "10m")
        until(lambda: share("e-c") == 300_000, WAIT_S, solver.log_tail)
        assert "B pinned to exactly 30 % by ann until" in ask(desk, "fleet", "list")
        why = json.loads(ask(desk, "explain", "B", "e-c", "--json"))
        (binding,) = (clause for clause in why["binding"] if "pinned" in clause)
        assert binding.startswith("e-c is pinned to exactly 30 % by ann until ")
        assert "pin" in {p["protection"] for p in why["protections"]}
        *parts, whole = why["terms_ms"].values()
        assert sum(parts) == pytest.approx(whole, abs=1e-6)

        too_much = run(desk, "pin", "B", "e-b", "--share", "80%", "--reason", "trial", "--force")
        assert too_much.exit_code == 1
        assert "would add up to 110 %: 80 % to e-b + 30 % to e-c" in str(too_much.exception)
        assert "--force" not in str(too_much.exception)

        moved = ask(desk, "tail", "--diff", "--json", "--no-follow", "--since", before)
        causes = [move["cause"] for line in moved.splitlines() for move in json.loads(line)["moves"]]
        assert any(cause.startswith("e-c: B pinned to exactly 30 % by ann until ") for cause in causes), causes
        ask(desk, "unpin", "B", "e-c")
        until(lambda: "pin" not in acting(), WAIT_S, solver.log_tail)
        ask(desk, "replay", "verify", "--from", "10m")  # by the records alone the same comes out, pin and all
    finally:
        solver.stop()
        reader.close()
