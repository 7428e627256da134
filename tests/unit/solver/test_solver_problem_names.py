"""Names in a problem file that are nobody's, and problems that would only follow from others."""

from typing import Any

import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.problem_file.problem_json import parse_problem


def profile(profile_id: str = "p", **changes: object) -> dict[str, Any]:
    plain = {"profile_id": profile_id, "capacity_rps": 10, "output_tokens": 5, "load_knots": [0, 0.5, 1]}
    return {**plain, "ttft_s": [0.1, 0.2, 0.3], "tbot_s": [0, 0, 0], **changes}


def engine(engine_id: str, site: str) -> dict[str, Any]:
    return {"engine_id": engine_id, "site": site, "models": ["m"], "profile_id": "p", "ready_replicas": 2}


def document(*links: tuple[str, str], **changes: object) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "profiles": [profile()],
        "engines": [engine("e1", "s1"), engine("e2", "s2")],
        "network": [{"from_cluster": cluster, "to_site": site, "rtt_ms": 5} for cluster, site in links],
        "demand": [{"cluster": "c1", "model": "m", "demand_rps": 3}],
    }
    return {**plain, **changes}


def problems_of(content: dict[str, Any], given: tuple[LatencyProfile, ...] = ()) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        parse_problem(content, given=given)
    return caught.value.problems


def test_a_mistyped_link_whose_own_place_is_empty_is_refused_with_all_other_problems() -> None:
    told = problems_of(document(("c1", "s11"), ("c1", "s2"), engines=[engine("e1", "s1"), engine("e2", "s2")]))
    assert told == ("network ('c1', 's11'): to_site is 's11', a site that no engine is at; did you mean 's1'?",)
    told = problems_of(document(("c12", "s1"), ("c1", "s2"), profiles=[profile(capacity_rps=-1)]))
    assert told == (
        "profiles[0].capacity_rps is -1.0; a finite number, 1e-09 to 1e+09",
        "network ('c12', 's1'): from_cluster is 'c12', a cluster that asks for nothing; did you mean 'c1'?",
    )


def test_a_link_of_a_larger_network_is_told_and_changes_nothing() -> None:
    own = (("c1", "s1"), ("c1", "s2"))
    larger = parse_problem(document(*own, ("c1", "s11"), ("elsewhere", "s2")))
    assert larger.warnings == (
        "network[].from_cluster names a cluster that asks for nothing: 'elsewhere'",
        "network[].to_site names a site that no engine is at: 's11' (nearest: 's1')",
    )
    assert parse_problem(document(*own)).warnings == ()


def test_names_that_could_not_be_read_are_held_against_no_link() -> None:
    torn = document(("c1", "s1"), engines=[engine("e2", "s2"), {**engine("e1", "s1"), "site": 5}])
    assert problems_of(torn) == ("engines[1].site is 5; expected a string",)


def test_profiles_of_which_no_engine_has_one_are_refused() -> None:
    given = parse_problem(document(("c1", "s1"), ("c1", "s2"))).problem.profiles["p"]
    mine = document(("c1", "s1"), ("c1", "s2"), profiles=[profile("llama-h100")])
    for each in mine["engines"]:
        each["profile_id"] = "llama-h100"
    assert problems_of(mine, given=(given,)) == (
        "profiles given are 'p': no engine has one of them; engines have llama-h100",
    )
    near = parse_problem(document(("c1", "s1"), ("c1", "s2"), profiles=[profile("p")])).problem.profiles["p"]
    assert parse_problem(document(("c1", "s1"), ("c1", "s2")), given=(near,)).problem.profiles == {"p": near}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"previous": [{"cluster": "c1", "model": "m", "weights_ppm": {"e1": 2_000_000}}]},
            "previous[0].weights_ppm.e1 is 2000000; a whole number, 0 to 1000000",
        ),
        (
            {"profiles": [profile(load_knots=[0.1, 0.5, 1.2])]},
            "profiles[0].load_knots[2] is 1.2; a finite number, 0 to 1",
        ),
        ({"profiles": [profile(load_knots=None)]}, "profiles[0].load_knots is missing; expected a list"),
        ({"profiles": [profile(ttft_s=["x", 0.2, 0.3])]}, "profiles[0].ttft_s[0] is 'x'; expected a number"),
        (
            {"pins": [{"cluster": "c1", "engine_id": "e1", "least": 0.5, "most": -1}]},
            "pins[0].most is -1.0; a finite number, 0 to 1",
        ),
    ],
)
def test_what_only_follows_from_a_value_that_was_told_is_not_told_again(changes: dict[str, Any], told: str) -> None:
    assert problems_of(document(("c1", "s1"), ("c1", "s2"), **changes)) == (told,)
