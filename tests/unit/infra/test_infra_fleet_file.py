"""A fleet as a file: what may be left out, and every problem at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.infra.fleet_file import parse_fleet, read_fleet_file
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec

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
