"""`headrace route`: from a snapshot file to an engine, a share or a clear error."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataplane_inputs import TICK_MS, TTL_MS, route_weights, shares, snapshot
from headrace.infra.commands.route import command
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import write_snapshot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "weights.json"
    write_snapshot(
        file,
        snapshot(
            route_weights(shares(a=3, b=1)),
            route_weights({"a": 1_000_000}, cluster="B"),
            route_weights(shares(a=1, b=1), model="n", shed_ratio=0.5, version=4),
        ),
    )
    return file


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--snapshot", str(path), *arguments])


def problem(path: Path, *arguments: str) -> str:
    result = run(path, *arguments)
    assert isinstance(result.exception, InvalidInputError)
    return result.exception.problems[0]


def test_a_key_gets_its_engine_with_the_reason_and_the_version(path: Path) -> None:
    result = run(path, "--model", "m", "--cluster", "A", "--key", "session-1")
    assert result.exit_code == 0
    engine, weights, sentence = result.output.splitlines()
    assert engine in ("a at http://a:8000 (SLOT)", "b at http://b:8000 (SLOT)")
    assert (weights, sentence) == ("A|m|default, weights of epoch 1 version 1", "as planned")


def test_the_same_as_json(path: Path) -> None:
    printed = json.loads(run(path, "--model", "m", "--cluster", "B", "--key", "x", "--json").output)
    assert printed == {
        "route": "B|m|default",
        "outcome": "ROUTED",
        "engine_id": "a",
        "address": "http://a:8000",
        "reason": "SLOT",
        "epoch": 1,
        "version": 1,
        "retry_after_s": None,
        "propensity": 1.0,
    }


def test_many_keys_are_held_against_the_weights(path: Path) -> None:
    printed = json.loads(run(path, "--model", "m", "--cluster", "A", "--count", "20000", "--json").output)
    a, b = printed["engines"]
    assert (a["engine_id"], a["weight"], b["engine_id"], b["weight"]) == ("a", 0.75, "b", 0.25)
    assert a["keys"] + b["keys"] == 20_000
    # Standard deviation of a share of 20,000 keys at 3/4: sqrt(3/16 / 20000) = 0.0031.
    assert abs(a["share"] - 0.75) < 5 * 0.0031


def test_many_keys_as_a_table_with_what_was_shed(path: Path) -> None:
    lines = run(path, "--model", "n", "--count", "1000").output.splitlines()
    assert lines[0] == "A|n|default: 1000 keys by the weights of epoch 1 version 4"
    assert [line.split()[0] for line in lines[1:]] == ["engine", "a", "b", "not", "SHED"]
    assert sum(int(line.split()[-1]) for line in (*lines[2:4], lines[5])) == 1_000
    assert lines[5].split()[1] == "50.0000%"


def test_an_engines_share_is_of_the_routed_keys_and_stands_beside_its_weight(path: Path) -> None:
    printed = json.loads(run(path, "--model", "n", "--count", "20000", "--json").output)
    a, b = printed["engines"]
    assert a["share"] + b["share"] == pytest.approx(1.0)
    # Standard deviations: of a half of some 10,000 routed keys 0.005, of a half of 20,000 keys 0.0035.
    assert abs(a["share"] - a["weight"]) < 5 * 0.005
    assert printed["shed"]["expected"] == 0.5
    assert abs(printed["shed"]["share"] - 0.5) < 5 * 0.0035
    assert printed["routed"] + printed["refused"]["SHED"] == printed["count"] == 20_000


def test_an_engine_taken_for_dead_gets_nothing(path: Path) -> None:
    printed = json.loads(run(path, "--model", "m", "--cluster", "A", "--count", "99", "--down", "a", "--json").output)
    assert {row["engine_id"]: row["keys"] for row in printed["engines"]} == {"a": 0, "b": 99}


def test_a_refusal_says_when_to_try_again(path: Path) -> None:
    result = run(path, "--model", "m", "--cluster", "B", "--down", "a")
    assert result.output.startswith("REFUSED: ALL_DOWN; try again in 1 s\n")


def test_a_snapshot_past_its_time_to_live_says_so(path: Path) -> None:
    result = run(path, "--model", "m", "--cluster", "B", "--at-ms", str(TICK_MS + TTL_MS))
    assert "(STALE_WEIGHTS)" in result.output


def test_what_the_snapshot_does_not_have_is_told_with_what_it_has(path: Path) -> None:
    assert problem(path, "--model", "x") == "--model is 'x'; the snapshot has m, n"
    assert problem(path, "--model", "n", "--cluster", "B") == "--cluster is 'B'; the snapshot has A for model 'n'"
    assert problem(path, "--model", "n", "--class", "batch") == (
        "--class is 'batch'; the snapshot has default for model 'n' at cluster 'A'"
    )
    assert problem(path, "--model", "m") == "--cluster is not given; the snapshot has A, B for model 'm'"


def test_a_key_and_a_count_are_two_questions(path: Path) -> None:
    result = run(path, "--model", "m", "--key", "x", "--count", "5")
    assert result.exit_code == 2
