"""What operators are told, held against a fleet that lives: what-if comes true, a slow engine's move has its reason."""

import json
import sys
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from whole_path import WholePath, whole_path

from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.fleet import commands as do
from headrace.infra.provision import apply_topics
from headrace.schemas.weights import PPM, Snapshot

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

HEADRACE = (sys.executable, "-c", "from headrace.infra.cli import main; main()")
B = "cluster-b|llama-3.1-8b|default"
RECENT = 6
"""Snapshots that a mean is taken over: what is demanded is counted, and a count has its noise."""
WITHIN = 0.05
HELD_BACK = 0.8
"""What is left of a capacity that a route must answer: at a little more, staying may cost less than moving."""


@pytest.fixture
def path(embedded_broker: Broker, tmp_path: Path) -> Iterator[WholePath]:
    topics = fresh_topics()
    apply_topics(embedded_broker.kafka, topics)
    with whole_path(embedded_broker.kafka, topics, tmp_path) as made:
        yield made


def ask(path: WholePath, *typed: str) -> str:
    """Run a command beside the fleet, which lives on meanwhile."""
    where = ("--bootstrap", path.kafka.bootstrap_servers, "--set", f"topics.prefix={path.topics.prefix}")
    done = Popen((*HEADRACE, *typed, *where), stdout=PIPE, stderr=PIPE, text=True)
    path.run_until(f"headrace {typed[0]} ends", lambda: done.poll() is not None)
    said, complained = done.communicate()
    assert done.returncode == 0, complained
    return said


def loads(snapshot: Snapshot) -> dict[str, float]:
    found: dict[str, float] = {}
    for route in snapshot.routes:
        served = route.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            found[target.engine_id] = found.get(target.engine_id, 0.0) + served * target.weight_ppm / PPM
    return found


def share(snapshot: Snapshot, route: str, engine: str) -> float:
    targets = (t for r in snapshot.routes if str(r.route) == route for t in r.targets)
    return next((t.weight_ppm / PPM for t in targets if t.engine_id == engine), 0.0)


def mean(path: WholePath, of: Callable[[Snapshot], float]) -> float:
    return sum(of(snapshot) for snapshot in path.reader.snapshots[-RECENT:]) / RECENT


def settled(path: WholePath) -> bool:
    """Say whether B asks for its 120 RPS, and its weights have stood for a while."""
    recent = path.reader.snapshots[-2 * RECENT :]
    if len(recent) < 2 * RECENT:
        return False
    asked = next(r.demand_rps for r in recent[-1].routes if str(r.route) == B)
    shares = [share(snapshot, B, "engine-b") for snapshot in recent]
    return abs(asked - 120.0) < 12.0 and max(shares) - min(shares) < 0.02


def held_back(snapshot: Snapshot) -> float:
    return prod(p.factor for p in snapshot.commit.protections if p.engine_id == "engine-b")


def test_replicas_that_are_added_do_what_was_promised_and_a_slow_engine_s_move_is_told_and_explained(
    path: WholePath,
) -> None:
    path.open_to_arrivals()
    path.run_until("the weights stand", lambda: settled(path))
    promised: dict[str, Any] = json.loads(ask(path, "what-if", "--add-replicas", "engine-b=2", "--json"))
    # Four replicas of 25 RPS more or less; six would take half as much again.
    (b,) = (e for e in promised["engines"] if e["engine_id"] == "engine-b")
    assert b["after_capacity_rps"] == pytest.approx(150.0)
    assert b["after_load_rps"] > b["before_load_rps"] + WITHIN * 150.0

    path.simulation.command(do.Replicas("engine-b", 6))

    def comes_true() -> bool:
        for engine in promised["engines"]:
            name, capacity = engine["engine_id"], engine["after_capacity_rps"]
            if abs(mean(path, lambda s, n=name: loads(s).get(n, 0.0)) - engine["after_load_rps"]) > WITHIN * capacity:
                return False
        return all(
            abs(mean(path, lambda s, r=each["route"], e=each["engine_id"]: share(s, r, e)) - each["after_ppm"] / PPM)
            <= WITHIN
            for each in promised["shares"]
        )

    path.run_until("what was promised is there, within 5 %", comes_true)

    since = path.snapshot.commit.version + 1
    path.simulation.command(do.Slow("engine-b", 3.0))

    def held() -> list[int]:
        return [
            s.commit.version for s in path.reader.snapshots if s.commit.version >= since and held_back(s) < HELD_BACK
        ]

    path.run_until("engine-b is held back", lambda: bool(held()))
    first = held()[0]
    path.run_until("two ticks go by", lambda: path.snapshot.commit.version >= first + 2)

    told = ask(path, "tail", "--diff", "--json", "--no-follow", "--since", str(since))
    lines = [json.loads(line) for line in told.splitlines()]
    moves = [move for line in lines if line["version"] <= first + 2 for move in line["moves"]]
    assert any(
        move["cause"].startswith("engine-b: ") and "engine-b" in [part["engine_id"] for part in move["lost"]]
        for move in moves
    ), told

    why = json.loads(ask(path, "explain", "cluster-b", "engine-b", "--json"))
    assert why["computed_again"]
    assert "engine-b" in [p["engine_id"] for p in why["protections"]]
    assert {p["protection"] for p in why["protections"]} & {"backlog", "outlier", "measured_capacity", "trim"}
    *parts, whole = why["terms_ms"].values()
    assert sum(parts) == pytest.approx(whole, abs=1e-6)
