"""Why an engine has its weight, as `headrace explain` says it: terms that add up, what acted, what came before."""

from dataclasses import replace

import pytest

from headrace.infra.past_tick.again import differing
from headrace.infra.past_tick.wanted import Wanted, held_words, parse_wanted
from headrace.infra.weight_why.lines import report_lines
from headrace.infra.weight_why.report import AskedWeight, OneMore, weight_report, with_one_more
from headrace.infra.weight_why.steps import WeightStep, weight_steps
from headrace.infra.what_if.answer import what_if
from headrace.infra.what_if.edits import Asked, parse_edits
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import RouteKey
from headrace.schemas.state import OutcomePane
from headrace.schemas.weights import Protected, Snapshot
from headrace.solver.core.problem import Outcomes, Problem
from headrace.solver.core.tick import TickStamp, hold_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from past_ticks import TICK_MS, Again, acted_on, solved, three_regions
from solver_ticks import snapshot_of, stamp

SLOW = Protected("engine-b", "measured_capacity", 0.34, "measured to serve 34 RPS at its wall")
BUSY = Protected("engine-c", "backlog", 0.9, "20 stand in line")
ASKED = AskedWeight("cluster-b", "engine-b")


def test_the_terms_add_up_to_the_price_and_the_sentences_are_three() -> None:
    again = solved(three_regions())
    report = weight_report(again, again.tick.snapshot, ASKED, (), proved=True)
    terms = report.terms_ms
    assert terms is not None
    parts = (terms.network_ms, terms.engine_ms, terms.congestion_ms, terms.scarcity_ms, terms.move_ms)
    assert sum(parts) == pytest.approx(terms.marginal_ms, abs=1e-6)
    assert terms.marginal_ms == pytest.approx(report.route_marginal_ms, abs=1e-6)
    assert len(report.sentences) == 3
    assert report.alternatives[0].engine_ids == ("engine-a",)
    assert (report.computed_again, report.inputs_proved) == (True, True)


def test_protections_of_the_routes_engines_are_told_this_ones_first() -> None:
    again = acted_on(solved(three_regions()), BUSY, SLOW, Protected("elsewhere", "trim", 1.2, "of no engine here"))
    report = weight_report(again, again.tick.snapshot, ASKED, (), proved=True)
    assert report.protections == (SLOW, BUSY)
    lines = report_lines(report)
    assert "protections  engine-b: measured to serve 34 RPS at its wall (measured_capacity, x0.34)" in lines
    assert "             engine-c: 20 stand in line (backlog, x0.90)" in lines


def failing(succeeded: int, failed: int) -> Problem:
    """Give the three regions asking for half, where engine-b failed so many requests in each of ten seconds."""
    problem = three_regions()
    panes = {
        e.engine_id: tuple(
            OutcomePane(TICK_MS + 1000 * n, *((succeeded, failed) if e.engine_id == "engine-b" else (20, 0)), n < 8)
            for n in range(10)
        )
        for e in problem.engines
    }
    engines = tuple(replace(e, outcomes=Outcomes(panes[e.engine_id], 1000)) for e in problem.engines)
    rows = tuple(replace(row, demand_rps=row.demand_rps / 2) for row in problem.rows)
    return replace(problem, engines=engines, rows=rows)


def test_an_engine_that_fails_requests_reads_it_in_a_sentence_and_as_a_number() -> None:
    problem = failing(10, 10)
    again = solved(problem, solved(problem).tick.snapshot, 17)
    report = weight_report(again, again.tick.snapshot, ASKED, (), proved=True)
    failed = "100 of 200 requests failed in 10 s, others of its models 0.0 %"
    assert report.sentences[3:] == (f"Of engine-b itself: {failed}: 50 % of capacity (errors).",)
    assert report.failed_share == 0.5
    assert report.sentences[3] in report_lines(report)


def test_failures_for_which_nothing_is_taken_are_told_above_what_is_tolerated() -> None:
    def told(succeeded: int, failed: int) -> tuple[str, ...]:
        again = solved(failing(succeeded, failed))
        return weight_report(again, again.tick.snapshot, ASKED, (), proved=True).sentences[3:]

    assert told(98, 2) == (
        "Of engine-b itself: 20 of 1000 requests failed in 10 s, 2.0 %; nothing is taken from it for that.",
    )
    assert told(99, 1) == ()


def test_one_more_replica_comes_to_what_what_if_says() -> None:
    again = solved(three_regions())
    edits = parse_edits(Asked(replicas=("engine-b=1",)), again.problem)
    found = what_if(again, edits, SolverSettings(), Glop(), proved=True)
    report = with_one_more(weight_report(again, again.tick.snapshot, ASKED, (), proved=True), found)
    assert report.one_more_replica == OneMore(
        found.before.mean_ms, found.after.mean_ms, found.before.shed_rps, found.after.shed_rps, found.settled
    )
    assert found.after.mean_ms < found.before.mean_ms
    assert report.sentences[-1] == (
        f"Solved again with one more replica of engine-b: mean {found.after.mean_ms:.1f} ms "
        f"instead of {found.before.mean_ms:.1f} ms."
    )


def test_what_comes_out_otherwise_and_what_is_not_proved_is_said() -> None:
    again = solved(three_regions())
    unproved = weight_report(again, again.tick.snapshot, ASKED, (), proved=False)
    assert report_lines(unproved)[0].endswith("its inputs are not proved to be those that it was made from")
    changed = replace(again, differing=("cluster-b|llama-3.1-8b|default",))
    otherwise = weight_report(changed, again.tick.snapshot, ASKED, (), proved=True)
    assert "computed again it comes out otherwise" in report_lines(otherwise)[0]


def held(problem: Problem) -> Again:
    previous = solved(problem).tick.snapshot
    tick = hold_tick(problem, previous, SolverSettings(), TickStamp(1, 8, TICK_MS + 4_000), "telemetry lost")
    return Again(problem, tick, ())


def test_a_tick_that_only_held_says_what_it_held_and_since_which_version() -> None:
    again = held(three_regions())
    report = weight_report(again, again.tick.snapshot, ASKED, (), proved=True)
    assert report.terms_ms is None
    assert report.sentences[0] == "Nothing was decided in this tick: telemetry lost."
    assert report.sentences[1].startswith("cluster-b keeps sending engine-b 75.7 % of 120.0 RPS, as version 7 did: ")


@pytest.mark.parametrize("asked", [AskedWeight("mars", "engine-b"), AskedWeight("cluster-b", "engine-q")])
def test_what_is_not_there_is_told_with_what_is(asked: AskedWeight) -> None:
    for again in (solved(three_regions()), held(three_regions())):
        with pytest.raises(InvalidInputError, match="there are"):
            weight_report(again, again.tick.snapshot, asked, (), proved=True)


def test_the_history_of_a_weight_is_its_steps_told_once_they_add_up() -> None:
    route, made = "tokyo|m|default", list[Snapshot]()
    for i, ppm in enumerate((1_000_000, 998_000, 994_000, 600_000, 600_000)):
        snapshot, _ = snapshot_of({route: {"e1": ppm, "e2": 1_000_000 - ppm}}, stamp(1, i + 1, TICK_MS + 1_000 * i))
        made.append(snapshot)
    made[3] = Snapshot(replace(made[3].commit, protections=(replace(SLOW, engine_id="e1"),)), made[3].routes)
    cause = "e1: measured to serve 34 RPS at its wall (measured_capacity)"
    steps = weight_steps(made, RouteKey("tokyo", "m", "default"), "e1")
    assert steps == (
        WeightStep(3, TICK_MS + 2_000, 1_000_000, 994_000, "e2: by hand"),
        WeightStep(4, TICK_MS + 3_000, 994_000, 600_000, cause),
    )


def test_a_tick_is_meant_by_version_by_time_or_is_the_newest() -> None:
    commit = solved(three_regions()).tick.snapshot.commit  # version 7
    assert parse_wanted(None, 0, "explain") == Wanted()
    assert parse_wanted("812", 0, "explain").version == 812
    assert parse_wanted("1s", 5_000, "explain").at_ms == 4_000
    for wanted, past, met in (
        (Wanted(), False, True),
        (Wanted(version=6), True, False),
        (Wanted(version=7), False, True),
        (Wanted(version=8), False, False),
        (Wanted(at_ms=commit.tick_ms), False, True),
        (Wanted(at_ms=commit.tick_ms - 1), True, True),
    ):
        assert (wanted.is_past(commit), wanted.is_met(commit)) == (past, met), wanted


def test_an_instant_that_is_still_to_come_is_refused_and_not_taken_for_now() -> None:
    with pytest.raises(
        InvalidInputError, match="'2099-01-01T00:00Z', which is still to come: it is 1970-01-01 00:00:05"
    ):
        parse_wanted("2099-01-01T00:00Z", 5_000, "explain")
    assert parse_wanted("1970-01-01T00:00:05Z", 5_000, "explain").at_ms == 5_000


def test_what_history_holds_is_told_from_when_to_when() -> None:
    first = solved(three_regions()).tick.snapshot.commit
    last = replace(first, version=99, tick_ms=first.tick_ms + 60_000)
    assert held_words(first, last) == (
        "it holds version 7 of 2023-11-14 22:13:23 UTC to version 99 of 2023-11-14 22:14:23 UTC"
    )
    assert held_words(None, None).startswith("it holds no whole snapshot yet")
    assert Wanted(at_ms=first.tick_ms, text="5m").words == "5m (2023-11-14 22:13:23 UTC)"
    assert Wanted(version=8, text="version 8").words == "version 8"


def test_snapshots_differ_by_their_weights_and_by_nothing_else() -> None:
    again = solved(three_regions())
    ours = again.tick.snapshot
    again_later = Snapshot(replace(ours.commit, sentence="otherwise said"), ours.routes)
    assert differing(ours, again_later) == ()
    assert differing(ours, Snapshot(ours.commit, ours.routes[1:])) == (str(ours.routes[0].route),)


def test_what_is_shed_is_of_the_demand_of_the_tick_though_the_record_that_stands_is_of_an_older_one() -> None:
    plain = three_regions()

    def times(factor: float) -> Problem:
        rows = tuple(replace(r, demand_rps=2.0 * factor * r.demand_rps) for r in plain.rows)
        engines = tuple(replace(e, capacity_rps_per_replica=factor * e.capacity_rps_per_replica) for e in plain.engines)
        return replace(plain, rows=rows, engines=engines)

    again = solved(times(1.04), solved(times(1.0)).tick.snapshot, version=8)
    route = next(r for r in again.tick.snapshot.routes if r.cluster == "cluster-b")
    assert (route.version, route.demand_rps) == (7, 240.0)
    report = weight_report(again, again.tick.snapshot, ASKED, (), proved=True)
    assert report.demand_rps == pytest.approx(249.6)
    assert report.shed_rps == pytest.approx(249.6 * route.shed_ratio)
    assert f"({report.shed_rps:.1f} of 249.6 RPS are shed)" in report.sentences[0]
