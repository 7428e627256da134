"""A problem file is read whole or refused with everything that is wrong."""

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Reason
from headrace.solver.core.policies import policy_named, policy_names
from headrace.solver.core.problem import Pin
from headrace.solver.core.problem_file.problem_json import parse_problem
from headrace.solver.settings import SolverSettings


def document(**changes: object) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "description": "one of each",
        "settings": {"segments": 12, "engine_cost": "none", "move_price_ms": 5},
        "profiles": [
            {
                "profile_id": "p",
                "capacity_rps": 10,
                "output_tokens": 5,
                "load_knots": [0, 1],
                "ttft_s": [0.1, 0.2],
                "tbot_s": [0, 0],
            }
        ],
        "engines": [
            {"engine_id": "e1", "site": "s", "models": ["m"], "profile_id": "p", "ready_replicas": 2},
            {
                "engine_id": "e2",
                "site": "s",
                "models": ["m"],
                "profile_id": "p",
                "ready_replicas": 1,
                "capacity_rps_per_replica": 4.5,
                "capabilities": ["vision"],
                "address": "10.0.0.1:80",
                "exclusion": {"reason": "DRAINED", "sentence": "by its owner"},
            },
        ],
        "network": [{"from_cluster": "a", "to_site": "s", "rtt_ms": 12.5}],
        "demand": [{"cluster": "a", "model": "m", "demand_rps": 3, "tier": 1, "requires": ["vision"]}],
        "previous": [{"cluster": "a", "model": "m", "weights_ppm": {"e1": 400_000, "e2": 600_000}}],
    }
    return {**plain, **changes}


def problems_of(content: object) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        parse_problem(content)  # type: ignore[arg-type]
    return caught.value.problems


def test_a_sound_file_is_read_in_its_units() -> None:
    parsed = parse_problem(json.dumps(document()))
    assert parsed.settings == SolverSettings(segments=12, engine_cost="none", move_price_ms=5.0)
    e1, e2 = parsed.problem.engines
    # Capacity of a replica is the profile's where the engine does not say.
    assert (e1.capacity_rps, e2.capacity_rps_per_replica) == (20.0, 4.5)
    assert e2.exclusion is not None
    assert e2.exclusion.reason is Reason.DRAINED
    assert parsed.problem.network_s == {("a", "s"): 0.0125}
    assert parsed.problem.rows[0].route == RouteKey("a", "m", "default")
    assert parsed.previous is not None
    assert [t.weight_ppm for t in parsed.previous.routes[0].targets] == [400_000, 600_000]
    assert parse_problem(document(previous=[])).previous is None


def test_a_null_round_trip_means_that_every_probe_was_lost() -> None:
    parsed = parse_problem(document(network=[{"from_cluster": "a", "to_site": "s", "rtt_ms": None}]))
    assert parsed.problem.network_s == {("a", "s"): None}


def test_all_problems_are_told_at_once_with_the_nearest_key() -> None:
    bad = document(
        settings={"segmnts": 8, "period_ms": 1, "policy": "lq", "engine_cost": "some", "segments": 2.5, "classes": {}},
        engins=[],
        network=[{"from_cluster": "a", "to_site": "s"}, {"from_cluster": "a", "to_site": "s", "rtt_ms": -1}],
        demand=[
            {"cluster": "a|b", "model": "m", "demand_rps": -3, "tier": 12},
            {"cluster": "a", "model": "n", "demand_rps": True, "request_class": 5},
        ],
        previous=[{"cluster": "a", "model": "m", "weights_ppm": {"e7": 3}}],
    )
    text = "\n".join(problems_of(bad))
    for expected in (
        "engins is no field; did you mean 'engines'?",
        "settings.segmnts is no setting; did you mean 'segments'?",
        "settings.period_ms is 1; at least 50",
        "settings.policy is 'lq'; one of capacity_weighted, last_good, lp, nearest",
        "settings.engine_cost is 'some'; one of convex, none",
        "settings.segments is 2.5; an integer",
        "settings.classes is no setting; there are",
        "network[0].rtt_ms is missing",
        "network[1].rtt_ms is -1.0; a finite number, 0 to 3.6e+06",
        "network[1] repeats ('a', 's')",
        "demand[0].cluster is 'a|b'; allowed are",
        "demand[0].demand_rps is -3.0; a finite number, 0 to 1e+09",
        "demand[0].tier is 12; a whole number, 0 to 9",
        "demand[1].demand_rps is True; expected a number",
        "demand[1].request_class is 5; expected a string",
        "demand asks for 'n', which no engine serves",
        "previous[0].weights_ppm.e7 is no engine here",
        "previous[0].weights_ppm adds up to 3; exactly 1000000",
    ):
        assert expected in text


def test_engines_and_profiles_are_held_against_each_other() -> None:
    plain = document()
    plain["profiles"][0].update(load_knots=[0, 0.5, 0.5], ttft_s=[0.1], tbot_s=["x", 0, 0], capacity_rps=0)
    plain["engines"][0].update(profile_id="q", models=[], capabilities=["a", "a"], ready_replicas=1.5, site=None)
    plain["engines"][1].update(engine_id="e1", exclusion={"reason": "TIRED"}, residency=[3], factor=1.5)
    plain["network"] = "none"
    text = "\n".join(problems_of(plain))
    for expected in (
        "profiles[0].load_knots is [0.0, 0.5, 0.5]; at least two, each above the one before by 1e-09 or more",
        "profiles[0].ttft_s has 1 values; load_knots has 3",
        "profiles[0].tbot_s[0] is 'x'; expected a number",
        "profiles[0].capacity_rps is 0.0; a finite number, 1e-09 to 1e+09",
        "engines[0].profile_id is 'q', which is no profile here",
        "engines[0].models is empty; an engine serves at least one",
        "engines[0].capabilities names one twice",
        "engines[0].ready_replicas is 1.5; expected a whole number, 0 to 1000000",
        "engines[0].site is missing; expected a string",
        "engines[1] repeats e1",
        "engines[1].exclusion.reason is 'TIRED'; expected one of UNKNOWN, CHEAPEST",
        "engines[1].residency[0] is 3; a name is a string",
        "engines[1].factor is 1.5; a finite number, 0 to 1",
        "network is 'none'; expected a list",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "no JSON"),
        (b"\xff\xfe\xff", "no JSON"),
        ("[]", "problem is []; expected an object"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(content: str | bytes, problem: str) -> None:
    assert problems_of(content)[0].startswith(problem)


def test_a_number_that_overflows_is_refused() -> None:
    text = json.dumps(document()).replace('"demand_rps": 3', '"demand_rps": 1e999')
    assert "demand[0].demand_rps is inf; a finite number, 0 to 1e+09" in problems_of(text)
    plain = document(settings={"headroom_load": 0})
    assert problems_of(plain) == ("settings.headroom_load is 0; above 0",)
    upside_down = document(settings={"retry_load_low": 0.9, "retry_load_high": 0.8})
    assert problems_of(upside_down) == ("solver.retry_load_low is 0.9; at most retry_load_high, 0.8",)
    assert problems_of(document(settings={"leader_election": 3}))[0] == "settings.leader_election is 3; a bool"


@pytest.mark.parametrize("digits", [20, 400, 5_000])
def test_an_integer_beyond_all_floats_is_told_like_any_other_number(digits: int) -> None:
    plain = document()
    plain["engines"][0]["ready_replicas"] = 10 ** (digits - 1)
    plain["demand"][0].update(demand_rps=10 ** (digits - 1), tier=10 ** (digits - 1))
    found = problems_of(plain)
    assert [problem.split(" is ")[0] for problem in found] == [
        "engines[0].ready_replicas",
        "demand[0].tier",
        "demand[0].demand_rps",
    ]


def test_a_model_that_no_engine_serves_is_told_once_however_many_ask_for_it() -> None:
    plain = document()
    plain["demand"] = [{**plain["demand"][0], "cluster": f"c{i}", "model": "nobodys"} for i in range(3)]
    plain.pop("previous", None)
    assert problems_of(plain) == ("demand asks for 'nobodys', which no engine serves",)


def test_a_policy_is_found_by_its_file_name() -> None:
    assert policy_names() == (
        "capacity_weighted",
        "last_good",
        "lp",
        "nearest",
        "pid",
        "proportional",
        "round_robin",
        "waterfall",
    )
    with pytest.raises(InvalidInputError, match="did you mean 'nearest'"):
        policy_named("nearst")
    with pytest.raises(InvalidInputError, match="policy is 'x'; there are capacity_weighted"):
        policy_named("x")


def test_what_is_no_object_has_one_problem_and_not_one_for_each_field_it_lacks() -> None:
    assert problems_of("[]") == ("problem is []; expected an object",)
    engines = '{"profiles": [], "engines": [3, []], "network": [], "demand": []}'
    assert problems_of(engines) == ("engines[0] is 3; expected an object", "engines[1] is []; expected an object")


@pytest.mark.parametrize(
    ("written", "shown"), [("NaN", "nan"), ("-Infinity", "-inf"), ("1e400", "inf"), ("9" * 400, "inf")]
)
def test_a_number_that_is_not_finite_is_told_by_its_place_and_hides_nothing_else(written: str, shown: str) -> None:
    content = f"""{{"settings": {{"move_price_ms": {written}}}, "profiles": [], "engines": [], "network": [],
        "network": [], "demand": [{{"cluster": "c", "model": "m", "demand_rps": {written}, "tear": 1}}]}}"""
    told = problems_of(content)
    assert f"demand[0].demand_rps is {shown}; a finite number, 0 to 1e+09" in told
    assert "key 'network' is given 2 times in one object" in told
    assert "demand[0].tear is no field; did you mean 'tier'?" in told
    assert any(problem.startswith("settings.move_price_ms is") for problem in told)


def test_problems_are_told_of_the_file() -> None:
    with pytest.raises(InvalidInputError, match=r"^mine\.json: 1 problem"):
        parse_problem("[]", name="mine.json")
    with pytest.raises(InvalidInputError, match=r"^mine\.json: 1 problem"):
        parse_problem("{", name="mine.json")


@pytest.mark.parametrize("name", ["demand", "engines", "profiles"])
def test_what_could_not_be_read_has_one_problem_and_what_refers_to_it_none(name: str) -> None:
    items = document()[name]
    assert problems_of(document(**{name: [*items[:-1], 7]})) == (f"{name}[{len(items) - 1}] is 7; expected an object",)
    assert problems_of(document(**{name: 7})) == (f"{name} is 7; expected a list",)


def test_pins_bound_what_a_cluster_sends_an_engine_and_stand_by_engine_and_cluster() -> None:
    pins = [
        {"cluster": "a", "engine_id": "e2", "most": 0.5, "sentence": "a canary"},
        {"cluster": "a", "engine_id": "e1", "least": 0.1},
    ]
    assert parse_problem(document(pins=pins)).problem.pins == (
        Pin("a", "e1", 0.1, 1.0, "pinned in the problem file"),
        Pin("a", "e2", 0.0, 0.5, "a canary"),
    )
    assert parse_problem(document()).problem.pins == ()


def test_a_pin_of_nobody_or_upside_down_or_given_twice_is_refused() -> None:
    once = {"cluster": "a", "engine_id": "e1"}
    assert problems_of(document(pins=[{"cluster": "b", "engine_id": "e3", "least": 0.5, "most": 0.1}, once, once])) == (
        "pins[0].cluster is 'b', which is not among demand",
        "pins[0].engine_id is 'e3', which is not among engines",
        "pins[0].least is 0.5; at most `most`, 0.1",
        "pins[2] repeats ('e1', 'a')",
    )


def test_pins_that_add_up_to_more_than_a_route_are_refused_with_their_shares_beside_all_else() -> None:
    pins = [{"cluster": "a", "engine_id": "e1", "least": 0.7}, {"cluster": "a", "engine_id": "e2", "least": 0.7}]
    demand = [{"cluster": "a", "model": "m", "demand_rps": 3}]
    told = "pins of a|m|default add up to 140 %: 70 % to e1 + 70 % to e2; at most 100 %"
    assert problems_of(document(pins=pins, demand=demand)) == (told,)
    assert told in problems_of(document(pins=pins, demand=demand, network=7))
    assert parse_problem(document(pins=[{**pins[0], "least": 0.3}, pins[1]], demand=demand)).problem.pins
    # Only one of the two may serve what needs vision.
    assert parse_problem(document(pins=pins)).problem.pins


def test_profiles_that_are_given_stand_in_place_of_the_files_own() -> None:
    own = parse_problem(document()).problem.profiles["p"]
    quick = replace(own, ttft_s=(0.01, 0.02), capacity_rps=40.0)
    bare = {key: value for key, value in document().items() if key != "profiles"}
    for content in (document(), bare):
        problem = parse_problem(content, given=(quick,)).problem
        assert problem.profiles == {"p": quick}
        assert [e.capacity_rps_per_replica for e in problem.engines] == [40.0, 4.5]
    assert "profiles is missing" in problems_of(bare)
