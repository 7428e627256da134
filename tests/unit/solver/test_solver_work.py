"""Work by hand: a class of long requests loads, costs and is refused as what it is, and what is measured counts so."""

from dataclasses import replace

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, EngineMemory, Snapshot
from headrace.solver.core.effective import settings_of, settings_text
from headrace.solver.core.inputs.in_work import in_work
from headrace.solver.core.problem import Engine, Measured, Mix, Problem, Row, Throughput
from headrace.solver.core.problem_file.problem_json import parse_problem
from headrace.solver.core.program.score import score
from headrace.solver.core.protections import protect
from headrace.solver.core.protections.residual import residual
from headrace.solver.core.tick import Tick, TickStamp, policy_hash, solve_tick
from headrace.solver.core.why.explain import explain
from headrace.solver.glop import Glop
from headrace.solver.settings import ClassSettings, SolverSettings
from solver_problems import engine, problem, profile, row

FLAT = profile(ttft_s=(0.1, 0.1, 0.1))
LINKS: dict[tuple[str, str], float | None] = {("a", "s1"): 2.0, ("a", "s2"): 42.0}
SETTINGS = SolverSettings(trim_bound=1.0, load_spread=0.0)


def tick_of(p: Problem, previous: Snapshot | None = None, **changes: object) -> Tick:
    return solve_tick(p, previous, replace(SETTINGS, **changes), Glop(threads=1), TickStamp(1, 1, 1000))  # type: ignore[arg-type]


def batch(demand: float, work: float = 4.0, **changes: object) -> Row:
    return row("a", demand, request_class="batch", work=work, **changes)


def ppm_of(tick: Tick, request_class: str) -> dict[str, int]:
    found = next(r for r in tick.snapshot.routes if r.request_class == request_class)
    return {t.engine_id: t.weight_ppm for t in found.targets if t.weight_ppm}


def test_long_requests_travel_and_short_ones_stay_since_a_round_trip_is_paid_once_a_request() -> None:
    # Each engine has room for 10 a second, of work 1: 8 short ones and 2 of work 4 are 16.
    tick = tick_of(problem([batch(2.0), row("a", 8.0)], [engine("e1", "s1"), engine("e2", "s2")], LINKS, (FLAT,)))
    assert ppm_of(tick, "default") == {"e1": PPM}
    assert ppm_of(tick, "batch") == {"e1": PPM // 4, "e2": 3 * PPM // 4}
    assert tick.record.demand_rps == 10.0
    assert tick.record.capacity_rps == 20.0
    assert tick.record.utilisation == pytest.approx(0.8)
    loads = {t.engine_id: t.utilisation for r in tick.snapshot.routes for t in r.targets}
    assert loads == pytest.approx({"e1": 1.0, "e2": 0.6})


def test_the_mean_latency_is_of_requests_and_a_long_one_is_as_much_longer_in_its_engine() -> None:
    tick = tick_of(problem([batch(1.0), row("a", 4.0)], [engine("e1")], 10.0, (FLAT,)))
    assert tick.decision is not None
    scored = score(tick.decision.layout, tick.decision.plan)
    # 4 of 100 ms and 1 of 400: 160 ms in the mean, and each of the 5 pays its 10 ms on the way.
    assert scored.engine_ms == pytest.approx(160.0)
    assert scored.network_ms == pytest.approx(10.0)
    assert scored.served_rps == pytest.approx(5.0)
    assert tick.record.objective == pytest.approx(5.0 * 170.0)


def test_the_price_of_a_long_request_is_told_for_a_request_and_adds_up() -> None:
    p = problem([batch(1.0), row("a", 4.0)], [engine("e1", "s1")], LINKS)
    tick = tick_of(p)
    long, short = (explain(tick, "a", "e1", request_class=name) for name in ("batch", "default"))
    assert long.terms is not None
    assert short.terms is not None
    assert long.terms.network_ms == pytest.approx(short.terms.network_ms)
    assert long.terms.engine_ms == pytest.approx(4.0 * short.terms.engine_ms)
    assert long.terms.congestion_ms == pytest.approx(4.0 * short.terms.congestion_ms)
    assert long.terms.marginal_ms == pytest.approx(long.route_marginal_ms)
    assert long.demand_rps == 1.0
    assert "one more request, of work 4, costs 2.0 ms network" in long.sentences[0]
    assert "one more request costs 2.0 ms network" in short.sentences[0]


def test_one_more_replica_says_how_much_work_it_would_serve_of_what_is_shed() -> None:
    tick = tick_of(problem([batch(2.0, tier=1), row("a", 12.0)], [engine("e1", capacity=10.0)]))
    found = explain(tick, "a", "e1", request_class="default")
    # It is short of 2 of the important tier, and of 2 of work 4: ten more units of work serve them all.
    assert found.replica_worth_rps == pytest.approx(10.0)
    assert "serve 10.0 RPS of work 1 more of what is shed" in found.sentences[2]
    assert "e1 is full at 10.0 RPS of work 1" in found.sentences[2]


def test_a_long_request_of_an_important_tier_is_not_shed_for_many_short_ones_of_a_lesser() -> None:
    rows = [row("a", 8.0, request_class="chat", tier=1), row("a", 1.0, work=8.0)]
    tick = tick_of(problem(rows, [engine("e1", capacity=8.0)]))
    shed = {r.request_class: r.shed_ratio for r in tick.snapshot.routes}
    assert shed == pytest.approx({"chat": 1.0, "default": 0.0})


def test_a_long_chain_of_dear_moves_is_gone_for_the_sake_of_a_higher_tier() -> None:
    # c0 reaches s1 alone, and each ci its own s_i and, a second further, the next one; a lesser tier is at the end.
    count, links = 12, dict[tuple[str, str], float | None]()
    for i in range(1, count + 1):
        links |= {(f"c{i}", f"s{i}"): 0.0, (f"c{i - 1}", f"s{i}"): 1000.0 if i > 1 else 0.0}
    rows = [row(f"c{i}", 1.0, tier=int(i == count)) for i in range(count + 1)]
    engines = [engine(f"e{i}", f"s{i}", 1.0) for i in range(1, count + 1)]
    tick = tick_of(problem(rows, engines, links, (profile(ttft_s=(0.01, 0.01, 0.01)),)))
    assert {r.cluster: r.shed_ratio for r in tick.snapshot.routes if r.shed_ratio > 0.0} == {f"c{count}": 1.0}


# --- what engines measured ------------------------------------------------------------------------------------------


def mixed(spec: Engine) -> tuple[Problem, Snapshot]:
    """An engine that was sent 2 requests a second of work 1, and 2 of work 4: 2.5 each in the mean."""
    p = problem([batch(2.0), row("a", 2.0)], [spec], 0.0, (FLAT,))
    return p, tick_of(replace(p, engines=(replace(spec, measured=None, throughput=None),))).snapshot


def test_rates_become_work_by_the_mix_of_the_weights_that_stood() -> None:
    told = Measured(4.0, 0.1, 0.1, 50, 1.0)
    p, stood = mixed(engine("e1", measured=told, throughput=Throughput(0, 1.0, 0.0, 4.0, 4.0, 10.0)))
    (found,) = in_work(p, stood).engines
    # Of 10 units of work 8 come four at a time: (2 x 1 + 2 x 16) / 10.
    assert found.mix == Mix(2.5, 3.4)
    assert found.measured == replace(told, rate_rps=10.0)
    assert found.throughput is not None
    assert (found.throughput.recent_rps, found.throughput.window_rps) == (10.0, 10.0)
    again = in_work(p, stood)
    assert in_work(again, stood) is again


def test_where_all_work_is_1_or_nothing_stood_nothing_is_done() -> None:
    p, stood = mixed(engine("e1"))
    assert in_work(p, None) is p
    plain = replace(p, rows=tuple(replace(r, work=1.0) for r in p.rows))
    assert in_work(plain, stood) is plain


def test_an_end_to_end_latency_of_long_requests_is_not_taken_for_a_slow_engine() -> None:
    # 5 units of work a second of 10: 100 ms of work 1, 250 ms of the mean request; by Little's law 0.5 are inside.
    as_they_came = Measured(2.0, 0.25, 0.25, 50, 0.5, as_they_came=True)
    p = problem([batch(1.0), row("a", 1.0)], [engine("e1", measured=as_they_came)], 0.0, (FLAT,))
    stood = tick_of(replace(p, engines=(engine("e1"),))).snapshot
    seen = in_work(p, stood)
    assert residual(seen, seen.engines[0]) == pytest.approx(1.0)
    assert residual(p, p.engines[0]) == pytest.approx(2.5)


def test_a_full_engine_that_finishes_its_capacity_in_long_requests_keeps_its_capacity() -> None:
    # 4 requests a second are 10 units of work: all that it is stated to serve.
    full = Throughput(signal_ms=20_000, running=10.0, waiting=6.0, recent_rps=4.0, window_rps=4.0, window_s=10.0)
    p, stood = mixed(engine("e1", capacity=10.0, throughput=full))
    since = EngineMemory("e1", full_since_ms=0, full_replicas=1)
    remembering = replace(stood, commit=replace(stood.commit, remembered=(since,)))
    calm = replace(SETTINGS, backlog_drain_ms=0)
    assert protect(p, remembering, calm, 2_000).problem.engines[0].capacity_rps == pytest.approx(10.0)
    plain = replace(p, rows=tuple(replace(r, work=1.0) for r in p.rows))
    assert protect(plain, remembering, calm, 2_000).problem.engines[0].capacity_rps < 7.0


def test_chance_is_larger_where_work_comes_in_large_pieces() -> None:
    # Of 10 a second over 10 s chance is 1.5 x sqrt(10 x 3.4 / 10) = 2.77 of work; 1.5 were it all of work 1.
    full = Throughput(signal_ms=20_000, running=10.0, waiting=6.0, recent_rps=3.0, window_rps=3.0, window_s=10.0)
    since = EngineMemory("e1", full_since_ms=0, full_replicas=1)
    calm = replace(SETTINGS, backlog_drain_ms=0)
    believed: list[float] = []
    for finished in (2.95, 2.85):
        p, stood = mixed(engine("e1", capacity=10.0, throughput=replace(full, window_rps=finished)))
        remembering = replace(stood, commit=replace(stood.commit, remembered=(since,)))
        believed.append(protect(p, remembering, calm, 2_000).problem.engines[0].capacity_rps)
    assert believed == pytest.approx([10.0, 7.125])


def test_a_queue_of_long_requests_is_as_much_more_to_drain() -> None:
    queue = Measured(2.0, 0.1, 0.1, 50, inside=6.0, waiting=2.0)
    p, stood = mixed(engine("e1", capacity=10.0, measured=queue))
    # 2 wait, 1 of them as is normal for 4 in service; 1 of work 2.5 in 10 s is 0.25 a second of 10.
    (told,) = protect(p, stood, SETTINGS, 2_000).protections
    assert (told.protection, told.factor) == ("backlog", pytest.approx(0.975))


# --- settings -------------------------------------------------------------------------------------------------------


def test_the_policy_hash_knows_work_only_where_it_is_not_1() -> None:
    classes = {"default": ClassSettings(), "batch": ClassSettings(tier=1)}
    plain, heavy = (
        replace(SETTINGS, classes={**classes, "batch": ClassSettings(tier=1, work=work)}) for work in (1.0, 4.0)
    )
    assert policy_hash(plain) == policy_hash(replace(SETTINGS, classes=classes))
    assert policy_hash(heavy) != policy_hash(plain)


def test_recorded_settings_know_work_and_older_ones_that_do_not_mean_1() -> None:
    heavy = replace(SETTINGS, classes={"batch": ClassSettings(1, (), (), 4.0)})
    assert settings_of(settings_text(heavy)) == heavy
    older = settings_of('{"classes": {"batch": {"tier": 1, "requires": [], "residency": []}}}')
    assert older.classes["batch"].work == 1.0


def test_a_problem_file_gives_rows_their_work_within_bounds() -> None:
    asked: dict[str, object] = {"cluster": "a", "model": "m", "demand_rps": 3, "work": 2.5}
    knots = {"load_knots": [0, 1], "ttft_s": [0.1, 0.2], "tbot_s": [0, 0]}
    document = {
        "profiles": [{"profile_id": "p", "capacity_rps": 5, "output_tokens": 1, **knots}],
        "engines": [{"engine_id": "e", "site": "s", "models": ["m"], "profile_id": "p", "ready_replicas": 1}],
        "network": [{"from_cluster": "a", "to_site": "s", "rtt_ms": 1}],
        "demand": [asked],
    }
    (found,) = parse_problem(document).problem.rows
    assert (found.work, found.demand_work) == (2.5, 7.5)
    asked["work"] = 0
    with pytest.raises(InvalidInputError, match=r"demand\[0\]\.work is 0\.0; a finite number, 0\.001 to 1000"):
        parse_problem(document)
