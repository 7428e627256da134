"""What a hold publishes: the last weights, without those engines that are known to be gone."""

from dataclasses import replace

import pytest

from headrace.schemas.assembly import digest_of
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.weights import Reason, RouteWeights, Snapshot, SnapshotStatus
from headrace.solver.core.problem import Engine, Exclusion
from headrace.solver.core.tick import TickStamp, hold_tick, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row

SETTINGS = SolverSettings()
SILENT = Exclusion(Reason.STALE, "silent for 20.0 s")
BEFORE = problem([row("A", 24.0)], [engine(name) for name in ("a", "b", "c")])
EVEN = solve_tick(BEFORE, None, SETTINGS, Glop(threads=1), TickStamp(1, 1, 1_000)).snapshot
SHARES = {"a": 400_000, "b": 400_000, "c": 200_000}


def shared(snapshot: Snapshot) -> Snapshot:
    """Give engines a, b and c these weights, and these fallbacks."""
    (route,) = snapshot.routes
    targets = tuple(replace(t, weight_ppm=SHARES[t.engine_id]) for t in route.targets)
    fallback = tuple(replace(t, weight_ppm=SHARES[t.engine_id]) for t in route.fallback)
    routes = (replace(route, targets=targets, fallback=fallback),)
    digest = digest_of({r.key: r for r in routes})
    return Snapshot(replace(snapshot.commit, digest=digest), routes)


PREVIOUS = shared(EVEN)


def held(*engines: Engine, epoch: int = 1) -> RouteWeights:
    tick = hold_tick(problem([row("A", 24.0)], list(engines)), PREVIOUS, SETTINGS, TickStamp(epoch, 2, 1_500), "lost")
    assert check_snapshot(tick.snapshot, PREVIOUS) == ()
    assert tick.snapshot.commit.status is SnapshotStatus.HELD
    return tick.snapshot.routes[0]


def silent(*names: str) -> list[Engine]:
    return [engine(name, exclusion=SILENT) for name in names]


def weights(route: RouteWeights) -> dict[str, int]:
    return {target.engine_id: target.weight_ppm for target in route.targets}


def test_engines_that_are_only_silent_keep_what_they_had_and_nothing_is_written() -> None:
    assert held(*silent("a", "b", "c")) is PREVIOUS.routes[0]
    assert held(*silent("a", "b", "c"), epoch=2).epoch == 2


def test_an_engine_that_is_drained_during_a_hold_loses_its_weight_to_the_others() -> None:
    route = held(*silent("a", "b"), engine("c", exclusion=Exclusion(Reason.DRAINED, "drained by its operator")))
    assert weights(route) == {"a": 500_000, "b": 500_000}
    assert [(x.engine_id, x.reason) for x in route.excluded] == [("c", Reason.DRAINED)]
    assert route.sentence == "c gone during the hold; the last weights stand on the engines that are left"
    assert route.version == 2


def test_the_fallback_loses_it_too() -> None:
    assert [(f.engine_id, f.weight_ppm) for f in held(*silent("a", "b")).fallback] == [("a", 500_000), ("b", 500_000)]


@pytest.mark.parametrize(
    ("c", "reason"),
    [
        ((), Reason.DRAINED),
        ((engine("c", exclusion=Exclusion(Reason.UNHEALTHY, "says that it is unhealthy")),), Reason.UNHEALTHY),
        ((engine("c", models=("other",), exclusion=SILENT),), Reason.MODEL_NOT_SERVED),
    ],
)
def test_an_engine_that_was_removed_or_cannot_serve_any_more_is_gone(c: tuple[Engine, ...], reason: Reason) -> None:
    route = held(*silent("a", "b"), *c)
    assert weights(route) == {"a": 500_000, "b": 500_000}
    assert [(x.engine_id, x.reason) for x in route.excluded] == [("c", reason)]


def test_with_every_engine_gone_all_is_refused() -> None:
    route = held(engine("other", exclusion=SILENT))
    assert (route.targets, route.fallback, route.shed_ratio, route.retry_ratio) == ((), (), 1.0, 0.0)
    assert route.sentence == "a, b, c gone during the hold; all is refused, no engine that was used is left"


def test_what_is_left_keeps_its_ratio() -> None:
    assert weights(held(*silent("b", "c"))) == {"b": 666_667, "c": 333_333}
