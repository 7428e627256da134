"""A tenth of the requests is of work 5, in closed loop: engines tell requests of no class, the solver plans with work.

An engine serves its capacity in work; what is too much waits, at most two seconds of it. It tells, over ten seconds,
the requests that it finished and how long one of work 1 takes, and of this instant what is in it.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from headrace.schemas.weights import PPM, Snapshot
from headrace.solver.core.problem import Engine, Measured, Problem, Row, Throughput
from headrace.solver.core.profile.load_cost import MS, latency_ms
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, profile, row

KNOTS = tuple(float(k) for k in np.linspace(0, 1, 11))
CURVE = profile(
    "p", KNOTS, tuple(0.05 / (1 - 0.8 * k) for k in KNOTS), tuple(0.008 + 0.006 * k for k in KNOTS), tokens=200.0
)
LINKS: dict[tuple[str, str], float | None] = {
    ("a", "s1"): 2.0,
    ("a", "s2"): 30.0,
    ("a", "s3"): 80.0,
    ("b", "s1"): 30.0,
    ("b", "s2"): 2.0,
    ("b", "s3"): 50.0,
}
FLEET = (engine("e1", "s1", 40.0), engine("e2", "s2", 40.0), engine("e3", "s3", 60.0))
STEP_S, WINDOW = 0.5, 20
WORK = 5.0


@dataclass(slots=True)
class Served:
    """One engine's past: per step requests finished, latency of work 1, requests waiting and in service."""

    queue: float = 0.0
    steps: list[tuple[float, float, float, float]] = field(default_factory=list)

    def step(self, requests: float, work: float, capacity: float) -> None:
        served = min(work + self.queue / STEP_S, capacity)
        self.queue = min(max(self.queue + (work - served) * STEP_S, 0.0), 2.0 * capacity)
        ttft, tbot = latency_ms(CURVE, np.array([served / capacity]))
        latency_s = float(ttft[0] + CURVE.output_tokens * tbot[0]) / MS
        mean = work / requests if requests > 0.0 else 1.0
        self.steps.append((served / mean, latency_s + self.queue / capacity, self.queue / mean, served * latency_s))

    def tell(self, spec: Engine, now_ms: int) -> Engine:
        if len(self.steps) < WINDOW:
            return spec
        rate, latency_s = np.array(self.steps[-WINDOW:])[:, :2].mean(axis=0).tolist()
        _, _, waiting, running = self.steps[-1]
        recent = float(np.array(self.steps[-6:])[:, 0].mean())
        measured = Measured(rate, latency_s, latency_s, 100, running + waiting, waiting)
        through = Throughput(now_ms, running, waiting, recent, rate, WINDOW * STEP_S)
        return replace(spec, measured=measured, throughput=through)


def asked(scale: float) -> list[Row]:
    clusters = (("a", 30.0 * scale), ("b", 25.0 * scale))
    return [row(c, 0.9 * rps) for c, rps in clusters] + [
        row(c, 0.1 * rps, request_class="batch", tier=1, work=WORK) for c, rps in clusters
    ]


def loop(scale: float, ticks: int, *, told: bool) -> list[Tick]:
    """Run; `told` says whether the solver knows the work of a class."""
    rows, past, made = asked(scale), {spec.engine_id: Served() for spec in FLEET}, list[Tick]()
    known = rows if told else [replace(r, work=1.0) for r in rows]
    work = {r.route: r.work for r in rows}
    previous: Snapshot | None = None
    for t in range(1, ticks + 1):
        seen: Problem = problem(known, [past[e.engine_id].tell(e, 500 * t) for e in FLEET], LINKS, (CURVE,))
        made.append(solve_tick(seen, previous, SolverSettings(), Glop(threads=1), TickStamp(1, t, 500 * t)))
        previous = made[-1].snapshot
        for spec in FLEET:
            sent = [
                (rps, rps * work[r.route])
                for r in previous.routes
                for t_ in r.targets
                if t_.engine_id == spec.engine_id
                for rps in (r.demand_rps * (1.0 - r.shed_ratio) * t_.weight_ppm / PPM,)
            ]
            requests, loaded = (sum(part) for part in zip(*sent, strict=True)) if sent else (0.0, 0.0)
            past[spec.engine_id].step(requests, loaded, spec.capacity_rps)
    return made


def acted(ticks: list[Tick]) -> set[str]:
    return {each.protection for tick in ticks for each in tick.snapshot.commit.protections}


def test_where_the_work_is_known_no_protection_finds_anything_amiss_and_nothing_moves() -> None:
    ticks = loop(1.6, 80, told=True)
    assert acted(ticks) == set()
    assert sum(tick.record.moved_rps for tick in ticks[1:]) == pytest.approx(0.0, abs=1e-6)
    assert ticks[-1].record.utilisation == pytest.approx(0.88, abs=0.001)


def test_where_it_is_not_the_plan_is_wrong_and_protections_have_to_find_out() -> None:
    ticks = loop(1.6, 80, told=False)
    assert acted(ticks)
    assert ticks[0].record.utilisation == pytest.approx(0.629, abs=0.001)


def test_in_a_fleet_that_is_short_the_lesser_tier_is_shed_and_full_engines_keep_their_capacity() -> None:
    ticks = loop(2.2, 80, told=True)
    assert acted(ticks) == set()
    assert {r.request_class: r.shed_ratio > 0.0 for r in ticks[-1].snapshot.routes if r.shed_ratio} == {"batch": True}
    assert ticks[-1].record.utilisation == pytest.approx(1.0)
