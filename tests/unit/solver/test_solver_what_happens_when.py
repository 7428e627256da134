"""Lines of the table of events that no other test follows from the first tick to the last."""

from dataclasses import replace

from headrace.schemas.weights import PPM, Reason, RouteWeights, Snapshot
from headrace.solver.core.decide import Decided, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.core.tick import TickStamp
from headrace.solver.glop import Glop
from headrace.solver.settings import ClassSettings, SolverSettings
from solver_inputs import NOW_MS, demand_state, engine_state, network_state, profile, spec

SETTINGS = SolverSettings(stay_within=0.0)
NAMES = ("e1", "e2")


def view(heard_ms: dict[str, int], now_ms: int, **fields: tuple[str, ...]) -> StateView:
    """Two engines of 100 RPS, e1 at 10 ms and e2 at 60 ms, and 50 RPS; each engine last heard of at its own time."""
    specs = [spec(name, site=f"site-{name}", **fields) for name in NAMES]
    links = [network_state("c", f"site-{name}", rtt, now_ms) for name, rtt in zip(NAMES, (0.01, 0.06), strict=True)]
    states = [engine_state(name, ms, period_ms=1_000) for name, ms in heard_ms.items()]
    demand = demand_state("c", 50.0, now_ms)
    return StateView(
        specs={s.key: s for s in specs},
        profiles={b"p": profile()},
        engines={s.key: s for s in states},
        demands={demand.key: demand},
        links={link.key: link for link in links},
        inputs=(),
        overrides={},
    )


def decided(seen: StateView, now_ms: int, previous: Snapshot | None, settings: SolverSettings = SETTINGS) -> Snapshot:
    version = 1 if previous is None else previous.commit.version + 1
    found = decide(assemble(seen, settings, now_ms), previous, settings, Glop(1), TickStamp(1, version, now_ms), 0)
    assert isinstance(found, Decided)
    assert found.fault is None
    return found.tick.snapshot


def ppm(route: RouteWeights, engine_id: str) -> int:
    return next((t.weight_ppm for t in route.targets if t.engine_id == engine_id), 0)


def acted(snapshot: Snapshot, protection: str) -> list[str]:
    return [p.engine_id for p in snapshot.commit.protections if p.protection == protection]


def test_an_engine_that_falls_silent_fades_expires_is_stale_and_is_ramped_back_on_its_return() -> None:
    first = decided(view(dict.fromkeys(NAMES, NOW_MS), NOW_MS), NOW_MS, None)
    assert ppm(first.routes[0], "e1") > ppm(first.routes[0], "e2")

    # It reports every second: from three missed ones on it fades, from six on it is out.
    now_ms = NOW_MS + 5_000
    faded = decided(view({"e1": NOW_MS, "e2": now_ms}, now_ms), now_ms, first)
    assert 0 < ppm(faded.routes[0], "e1") < ppm(first.routes[0], "e1")

    now_ms = NOW_MS + 6_000
    out = decided(view({"e1": NOW_MS, "e2": now_ms}, now_ms), now_ms, faded)
    assert ppm(out.routes[0], "e2") == PPM
    assert [(x.engine_id, x.reason) for x in out.routes[0].excluded] == [("e1", Reason.STALE)]

    now_ms = NOW_MS + 7_000
    back = decided(view(dict.fromkeys(NAMES, now_ms), now_ms), now_ms, out)
    assert back.routes[0].excluded == ()
    assert acted(back, "cold_ramp") == ["e1"]
    assert 0 < ppm(back.routes[0], "e1") <= 0.6 * PPM, "30 of its 100 RPS, of 50"

    now_ms = NOW_MS + 7_000 + SETTINGS.cold_ramp_ms
    warm = decided(view(dict.fromkeys(NAMES, now_ms), now_ms), now_ms, back)
    assert acted(warm, "cold_ramp") == []


def test_a_residency_that_leaves_no_engine_is_refused_with_the_constraint_that_excludes_each() -> None:
    settings = replace(SETTINGS, classes={"default": ClassSettings(residency=("eu",))})
    seen = view(dict.fromkeys(NAMES, NOW_MS), NOW_MS, residency=("us",))
    (route,) = decided(seen, NOW_MS, None, settings).routes
    assert route.shed_ratio == 1.0
    assert route.targets == ()
    assert route.fallback == ()
    assert route.retry_ratio == 0.0
    assert [(x.engine_id, x.reason) for x in route.excluded] == [("e1", Reason.RESIDENCY), ("e2", Reason.RESIDENCY)]
    assert {x.sentence for x in route.excluded} == {"its residency is us; allowed: eu"}
    assert "all refused" in route.sentence
