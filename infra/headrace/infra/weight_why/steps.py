"""The history of one weight: its steps over the snapshots before a tick, each with its likeliest cause. Pure.

A step is told once the share differs by `STEP_FROM` from the one last told, so many small ones are told together.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.infra.weights_tail.causes import cause_of
from headrace.infra.weights_tail.route_move import route_move
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, RouteWeights, Snapshot

STEP_FROM = 0.005
MAX_STEPS = 50


@dataclass(frozen=True, slots=True)
class WeightStep:
    """One step of a weight, and why."""

    version: int
    tick_ms: int
    before_ppm: int
    after_ppm: int
    sentence: str


def weight_steps(snapshots: Iterable[Snapshot], route: RouteKey, engine_id: str) -> tuple[WeightStep, ...]:
    """Give the last `MAX_STEPS` steps of a weight, oldest first."""
    steps: list[WeightStep] = []
    told: tuple[Snapshot, RouteWeights] | None = None
    for snapshot in snapshots:
        now = next((r for r in snapshot.routes if r.route == route), None)
        if now is None or told is None:
            told = told if now is None else (snapshot, now)
            continue
        before, after = _share(told[1], engine_id), _share(now, engine_id)
        if abs(after - before) < STEP_FROM:
            continue
        cause = cause_of(route_move(told[1], now), told[0], snapshot)
        commit = snapshot.commit
        steps.append(WeightStep(commit.version, commit.tick_ms, round(before * PPM), round(after * PPM), cause))
        told = snapshot, now
    return tuple(steps[-MAX_STEPS:])


def _share(route: RouteWeights, engine_id: str) -> float:
    return next((t.weight_ppm / PPM for t in route.targets if t.engine_id == engine_id), 0.0)
