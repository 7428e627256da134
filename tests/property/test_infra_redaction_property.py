"""What `--redact` gives out tells nothing of addresses, of absolute rates and capacities, or of engines' own names."""

import re
from dataclasses import replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from headrace.infra.past_tick.again import Again
from headrace.infra.redaction.redact import Redaction
from headrace.infra.weight_why.report import AskedWeight, WeightReport, weight_report
from headrace.infra.weight_why.steps import WeightStep
from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.ids import RouteKey
from headrace.schemas.plain import to_plain
from headrace.schemas.weights import (
    EngineMemory,
    Excluded,
    FallbackTarget,
    InputOffsets,
    Protected,
    Reason,
    RouteWeights,
    Snapshot,
    Target,
)
from past_ticks import acted_on, solved, three_regions
from solver_ticks import snapshot_of, stamp

REDACTION = Redaction(b"a secret")
NAMES = st.text("abcdefghij0123456789-", min_size=3, max_size=12).map(lambda s: f"own-{s}")
RATES = st.floats(0.001, 1e6, allow_nan=False).map(lambda x: float(f"{x:.9g}"))
SHARES = st.floats(0, 1)


@st.composite
def routes(draw: st.DrawFn) -> RouteWeights:
    engines = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rate = draw(RATES)
    said = f"{engines[0]} at 10.1.2.3:8000 takes {rate} RPS"
    targets = tuple(
        Target(name, f"http://{name}.example:8000", 5, 6, 7, 0.01, 0.2, 0.01, draw(SHARES), 3.5, Reason.SPILL, said)
        for name in engines
    )
    return RouteWeights(
        *RouteKey(draw(st.sampled_from("ABC")), draw(st.sampled_from("mn")), "default"),
        tier=0,
        epoch=1,
        version=7,
        demand_rps=rate,
        targets=targets,
        excluded=tuple(Excluded(name, Reason.STALE, said) for name in draw(st.lists(NAMES, max_size=2))),
        fallback=tuple(FallbackTarget(name, "http://10.1.2.3:8000", 1) for name in engines),
        shed_ratio=draw(SHARES),
        retry_ratio=0.1,
        marginal_ms=draw(st.none() | st.floats(0, 1e4)),
        sentence=said,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    found = draw(st.lists(routes(), min_size=1, max_size=4, unique_by=lambda route: route.key))
    base, _ = snapshot_of({}, stamp(1, 7))
    engine = found[0].targets[0].engine_id
    commit = replace(
        base.commit,
        sentence=f"{engine} serves {found[0].demand_rps} RPS",
        inputs=(InputOffsets("headrace.state.engine", (123_456_789,)),),
        remembered=(EngineMemory(engine, full_replicas=4242),),
        protections=(Protected(engine, "measured_capacity", 0.5, f"{engine} serves {found[0].demand_rps} RPS"),),
    )
    return Snapshot(commit, tuple(found))


def given_out(snapshot: Snapshot, redaction: Redaction = REDACTION) -> str:
    return orjson.dumps(to_plain(redaction.line(Shown(snapshot, None), lambda _: True))).decode()


def scaled(snapshot: Snapshot, factor: float) -> Snapshot:
    return replace(snapshot, routes=tuple(replace(r, demand_rps=r.demand_rps * factor) for r in snapshot.routes))


@given(snapshots())
def test_no_name_address_sentence_or_position_of_a_snapshot_survives(snapshot: Snapshot) -> None:
    told = given_out(snapshot)
    for word in ("own-", "example", "10.1.2.3:", "RPS", "state.engine", "sentence", "address", "inputs", "remembered"):
        assert word not in told
    names = {target.engine_id for route in snapshot.routes for target in route.targets}
    assert len(set(re.findall(r"engine-[0-9a-f]{12}", told))) >= len(names)


@given(snapshots(), st.sampled_from([0.25, 2.0, 1024.0]))
def test_a_fleet_twice_as_large_under_twice_the_load_gives_the_same_bytes(snapshot: Snapshot, factor: float) -> None:
    assert given_out(scaled(snapshot, factor)) == given_out(snapshot)


@given(snapshots())
def test_a_route_tells_its_share_of_the_demand_and_they_add_up(snapshot: Snapshot) -> None:
    line = REDACTION.line(Shown(snapshot, None), lambda _: True)
    assert abs(sum(route.demand_share or 0.0 for route in line.routes) - 1.0) < 1e-5
    rates = {repr(route.demand_rps) for route in snapshot.routes if route.demand_rps > 1.0}
    numbers = set(re.findall(r"[-+0-9.eE]+", given_out(snapshot)))
    assert not rates & numbers


@given(snapshots(), st.binary(min_size=1, max_size=200))
def test_an_engine_has_one_name_by_one_secret_and_another_by_another(snapshot: Snapshot, secret: bytes) -> None:
    assert given_out(snapshot, Redaction(secret)) == given_out(snapshot, Redaction(secret))
    assert given_out(snapshot, Redaction(secret)) != given_out(snapshot, Redaction(secret + b"x"))


def report_of(again: Again) -> WeightReport:
    steps = (WeightStep(6, 1, 0, 746_000, "cluster-b asks 120 RPS of engine-b"),)
    return weight_report(again, again.tick.snapshot, AskedWeight("cluster-b", "engine-b"), steps, proved=True)


def test_an_explanation_keeps_its_terms_and_loses_engines_sentences_and_rates() -> None:
    report = report_of(acted_on(solved(three_regions()), Protected("engine-b", "trim", 1.3, "slower than 100 RPS")))
    told = REDACTION.report(report)
    text = orjson.dumps(to_plain(told)).decode()
    assert (told.terms_ms, told.weight_ppm) == (report.terms_ms, report.weight_ppm)
    assert told.utilisation == report.utilisation
    assert told.engine == REDACTION.engine("engine-b")
    for word in ('"engine-a"', '"engine-b"', '"engine-c"', "engine-b ", "RPS", "asks", "slower"):
        assert word not in text
    numbers = set(re.findall(r"[-+0-9.eE]+", text))
    assert not {repr(report.demand_rps), repr(report.replica_worth_ms_rps)} & numbers
