"""A fleet as a file: what may be left out, and every problem at once."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.infra.fleet_records.file import FleetFile, parse_fleet, read_fleet_file
from headrace.infra.fleet_records.topics import left_out
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec
from headrace.solver.core.problem_file.problem_json import parse_problem

ENGINE: dict[str, Any] = {"engine_id": "engine-a", "site": "eu", "models": ["m"], "profile_id": "p"}
PROFILE: dict[str, Any] = {
    "profile_id": "p",
    "hardware": "H100",
    "model": "m",
    "capacity_rps": 10,
    "output_tokens": 100,
    "load_knots": [0, 0.5, 1],
    "ttft_s": [0.1, 0.2, 0.4],
    "tbot_s": [0.01, 0.01, 0.02],
    "measured_from_load": 0.1,
    "measured_to_load": 1,
    "source": "bench",
}


def problems_of(tree: object) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        parse_fleet("fleet.toml", tree)
    return caught.value.problems


def test_what_may_be_left_out_of_an_engine_has_its_default() -> None:
    (engine,) = parse_fleet("f", {"engines": [ENGINE]}).engines
    assert engine == EngineSpec(
        engine_id="engine-a",
        site="eu",
        models=("m",),
        capabilities=(),
        residency=(),
        profile_id="p",
        capacity_rps_per_replica=None,
        address=None,
        drain=False,
    )


def test_toml_and_json_hold_the_same(tmp_path: Path) -> None:
    as_json, as_toml = tmp_path / "f.json", tmp_path / "f.toml"
    as_json.write_text(json.dumps({"engines": [ENGINE], "profiles": [PROFILE]}))
    tables = (("engines", ENGINE), ("profiles", PROFILE))
    lines = [f"[[{name}]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in entry.items()) for name, entry in tables]
    as_toml.write_text("".join(lines))
    assert read_fleet_file(as_json) == read_fleet_file(as_toml)
    assert read_fleet_file(as_json).profiles[0].load_knots == (0.0, 0.5, 1.0)


def test_every_problem_of_every_entry_is_told_with_its_place() -> None:
    tree = {
        "engines": [ENGINE | {"engine_id": "engine a", "capacity_rps_per_replica": -1}, {"sight": "eu"}, 7],
        "profiles": [PROFILE | {"load_knots": [0, 2, 1]}],
        "enjines": [],
    }
    told = "\n".join(problems_of(tree))
    for expected in (
        "enjines: no such setting; the nearest is engines",
        "engines.1.sight: no such setting; the nearest is site",
        "engines.0.engine_id is 'engine a'",
        "engines.0.capacity_rps_per_replica is -1",
        "engines.1.engine_id is missing",
        "engines.1.profile_id is missing",
        "engines.2 is 7",
        "profiles.0.load_knots do not rise from 0 to 1",
    ):
        assert expected in told


def test_an_id_that_is_given_twice_is_named() -> None:
    assert problems_of({"engines": [ENGINE, ENGINE], "profiles": [PROFILE, PROFILE]}) == (
        "engine_id 'engine-a' is given 2 times",
        "profile_id 'p' is given 2 times",
    )


@pytest.mark.parametrize("tree", [{}, {"engines": []}, {"profiles": []}])
def test_an_empty_file_is_a_problem(tree: object) -> None:
    assert problems_of(tree) == ("there is neither an engine nor a profile",)


def test_a_file_of_another_shape_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    assert problems_of([ENGINE]) == ("the file holds a list; expected engines and profiles",)
    assert "expected a list of tables" in problems_of({"engines": {"a": 1}})[0]
    with pytest.raises(InvalidInputError, match="No such file"):
        read_fleet_file(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(InvalidInputError, match=r"broken\.json"):
        read_fleet_file(broken)


def test_the_form_is_a_complete_file_with_the_measured_profile_of_three_regions(tmp_path: Path) -> None:
    printed = CliRunner().invoke(headrace, ("fleet", "apply", "--form"))
    assert printed.exit_code == 0
    file = tmp_path / "fleet.toml"
    file.write_text(printed.stdout)
    fleet = read_fleet_file(file)
    shipped = parse_problem((resources.files("headrace.infra.problems") / "three-regions.json").read_bytes()).problem
    assert {profile.profile_id: profile for profile in fleet.profiles} == shipped.profiles
    for engine, known in zip(fleet.engines, shipped.engines, strict=True):
        assert (engine.engine_id, engine.site, engine.models) == (known.engine_id, known.site, known.models)
        assert engine.capacity_rps_per_replica == known.capacity_rps_per_replica
        assert engine.profile_id in shipped.profiles


def test_a_profile_needs_no_more_than_one_in_a_problem_file() -> None:
    few = {"profile_id": "p", "capacity_rps": 10, "output_tokens": 5, "load_knots": [0, 1]}
    few |= {"ttft_s": [0.1, 0.2], "tbot_s": [0, 0]}
    (profile,) = parse_fleet("few", {"profiles": [few]}).profiles
    problem = {"profiles": [few], "engines": [], "network": [], "demand": []}
    assert {"p": profile} == parse_problem(problem).problem.profiles


def test_a_list_and_a_file_that_are_not_there_are_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_fleet("f", {"engines": [{"engine_id": "e", "site": "s", "models": "m", "profile_id": "p"}]})
    assert caught.value.problems == ("engines.0.models is 'm'; it should be a list of strings",)
    with pytest.raises(InvalidInputError) as caught:
        read_fleet_file(tmp_path / "none.toml")
    assert caught.value.problems == ("cannot be read: No such file or directory",)


def test_engines_that_are_published_and_not_in_the_file_are_those_left_as_they_are() -> None:
    rows = [ENGINE | {"engine_id": f"engine-{name}"} for name in "abc"]
    a, b, c = parse_fleet("here", {"engines": rows, "profiles": [PROFILE]}).engines
    assert left_out((a, b, c), FleetFile((b,))) == ("engine-a", "engine-c")
    assert left_out((a,), FleetFile((a, b))) == ()


def test_a_value_of_another_type_is_not_read_as_if_it_were_right() -> None:
    engine = {**ENGINE, "drain": "yes", "capacity_rps_per_replica": "10"}
    profile = {**PROFILE, "capacity_rps": True, "load_knots": [0, "0.5", 1]}
    assert set(problems_of({"engines": [engine], "profiles": [profile]})) == {
        "engines.0.drain is 'yes'; it should be true or false",
        "engines.0.capacity_rps_per_replica is '10'; it should be a number",
        "profiles.0.capacity_rps is True; it should be a number",
        "profiles.0.load_knots.1 is '0.5'; it should be a number",
    }


def test_half_a_character_in_a_file_is_a_problem_that_can_be_printed(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps({"engines": [{**ENGINE, "address": "\ud800"}], "profiles": [PROFILE]}))
    with pytest.raises(InvalidInputError) as caught:
        read_fleet_file(file)
    assert caught.value.problems[0].startswith(r"engines.0.address is '\ud800'; ")
    str(caught.value).encode()


def test_half_a_character_in_a_problem_file_is_a_problem_of_its_engine() -> None:
    document = json.loads((resources.files("headrace.infra.problems") / "three-regions.json").read_text("utf-8"))
    document["engines"][0]["address"] = "\ud800"
    document["engines"][1]["address"] = "a\nb"
    with pytest.raises(InvalidInputError) as caught:
        parse_problem(json.dumps(document))
    assert [problem.partition(" is ")[0] for problem in caught.value.problems] == [
        "engines[0].address",
        "engines[1].address",
    ]
