"""What commands say to somebody who types them for the first time: wrong names, missing files, no broker."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra import cli
from headrace.infra.cli import headrace
from headrace.infra.kafka_edge import UnreachableError, require_topics
from headrace.infra.load_tests.profile_toml import profiles_toml
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.policies import policy_names
from headrace.solver.core.problem_file.problem_json import parse_problem

ROOT = Path(__file__).parents[3]


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(headrace, arguments, input=given)


def problems_of(*arguments: str, given: str | None = None) -> tuple[str, ...]:
    result = run(*arguments, given=given)
    assert isinstance(result.exception, InvalidInputError), result.output
    return result.exception.problems


@pytest.mark.parametrize(
    ("typed", "nearest"), [(("slove",), "solve"), (("fleet", "aply"), "apply"), (("topics", "dif"), "diff")]
)
def test_a_command_that_is_not_there_is_told_with_the_nearest(typed: Sequence[str], nearest: str) -> None:
    result = run(*typed)
    assert result.exit_code == 2
    assert f"no such command '{typed[-1]}'; the nearest is {nearest}" in result.output


def test_the_topics_as_configured_are_not_taken_for_those_that_are_there() -> None:
    first = run("topics", "list").stdout.splitlines()[0]
    assert first == "as configured (not checked against a broker; see `headrace topics diff`)"


def test_a_problem_that_is_not_there_is_told_with_the_nearest_that_ships() -> None:
    none = "there is no such file, and no such problem ships with headrace"
    assert problems_of("solve", "three-region") == (f"{none}; the nearest is three-regions",)
    assert problems_of("solve", "mars") == (f"{none}; there are three-regions",)


@pytest.mark.parametrize("name", ["mine.json", "folder/mine", "../none/three-regions.json"])
def test_what_looks_like_a_file_is_told_as_one(name: str) -> None:
    (problem,) = problems_of("solve", name)
    assert problem.startswith("there is no such file; problems that ship with headrace go by name: three-regions")


def test_ctrl_c_where_nobody_waits_for_it_ends_in_silence_with_the_shells_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("headrace.infra.commands.solve._content", interrupted)
    result = run("solve", "three-regions")
    assert (result.exit_code, result.output) == (130, "")


@pytest.mark.parametrize("given", [("--bootstrap", "localhost:1"), ("--set", "kafka.bootstrap_servers=localhost:1")])
def test_the_demo_says_that_its_broker_is_its_own(given: Sequence[str]) -> None:
    result = run("demo", *given)
    assert result.exit_code == 2
    assert "starts a broker of its own and touches no other" in result.output


def test_a_problem_is_read_from_standard_input_and_its_errors_say_so() -> None:
    printed = run("solve", "three-regions", "--print")
    assert printed.exit_code == 0
    assert run("solve", "-", given=printed.stdout).stdout == run("solve", "three-regions").stdout
    assert problems_of("solve", "-", given="[]") == ("problem is []; expected an object",)
    assert str(run("solve", "-", given="[]").exception).startswith("standard input: 1 problem")


def test_profiles_that_a_fit_wrote_stand_in_for_those_of_the_problem(tmp_path: Path) -> None:
    problem = json.loads(run("solve", "three-regions", "--print").stdout)
    profiles = parse_problem(problem).problem.profiles.values()
    file = tmp_path / "profiles.toml"
    file.write_text(profiles_toml(profiles), "utf-8")
    del problem["profiles"]
    answer = run("solve", "-", "--profiles", str(file), given=json.dumps(problem))
    assert (answer.exit_code, answer.stdout) == (0, run("solve", "three-regions").stdout)
    assert problems_of("solve", "three-regions", "--profiles", str(tmp_path / "none.toml"))


def test_profiles_that_would_change_nothing_are_refused_and_links_of_nobody_are_told(tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    engine = 'engine_id = "e"\nsite = "s"\nmodels = ["m"]\nprofile_id = "p"\ncapacity_rps_per_replica = 5.0\n'
    file.write_text(f"[[engines]]\n{engine}", "utf-8")
    assert problems_of("solve", "three-regions", "--profiles", str(file)) == ("it holds no [[profiles]]",)
    problem = json.loads(run("solve", "three-regions", "--print").stdout)
    problem["network"].append({"from_cluster": "mars", "to_site": "moon", "rtt_ms": 5})
    answer = run("solve", "-", given=json.dumps(problem))
    assert (answer.exit_code, answer.stdout) == (0, run("solve", "three-regions").stdout)
    assert "warning: network[].to_site names a site that no engine is at: 'moon'" in answer.stderr


def test_a_pin_that_no_route_can_keep_is_told_beside_the_answer() -> None:
    problem = json.loads(run("solve", "three-regions", "--print").stdout)
    problem["engines"].append({**problem["engines"][0], "engine_id": "other", "models": ["another"]})
    problem["demand"].append({"cluster": "cluster-c", "model": "another", "demand_rps": 1})
    problem["pins"] = [{"cluster": "cluster-a", "engine_id": "other", "least": 0.3, "sentence": "a canary"}]
    answer = run("solve", "-", given=json.dumps(problem))
    told = "pin of other: cluster-a a canary; it waits: no route of cluster-a may use it"
    assert (answer.exit_code, answer.stdout.splitlines()[1]) == (0, told)


def test_an_explanation_of_a_cluster_alone_is_told_what_it_takes_with_the_usage() -> None:
    result = run("solve", "three-regions", "--explain", "cluster-b")
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")
    assert "Error: --explain takes CLUSTER and ENGINE, such as --explain cluster-b engine-b" in result.stderr


def test_an_explanation_solves_again_with_one_more_replica() -> None:
    text = run("solve", "three-regions", "--explain", "cluster-b", "engine-b").stdout
    mean = run("solve", "three-regions").stdout.split("mean end to end ")[1].split()[0]
    again = re.search(
        r"Solved again with one more replica of engine-b: mean ([\d.]+) ms instead of ([\d.]+) ms\.", text
    )
    most = re.search(r"would take up to ([\d.]+) ms off the mean", text)
    assert again is not None
    assert most is not None
    assert again[2] == mean
    assert 0.0 < float(mean) - float(again[1]) <= float(most[1])
    problem = json.loads(run("solve", "three-regions", "--print").stdout)
    next(e for e in problem["engines"] if e["engine_id"] == "engine-b")["ready_replicas"] += 1
    assert f"mean end to end {again[1]} ms" in run("solve", "-", given=json.dumps(problem)).stdout


def test_a_policy_without_prices_says_so_and_not_that_no_other_engine_is_open() -> None:
    text = run("solve", "three-regions", "--policy", "nearest", "--explain", "cluster-b", "engine-b").stdout
    assert "What others would cost is not known: it was decided without prices." in text
    assert "No other unused engine" not in text
    assert "Solved again" not in text


def test_the_form_of_a_problem_says_how_to_print_a_whole_one() -> None:
    assert "headrace solve three-regions --print" in run("solve", "--form").stdout


def test_a_broker_that_does_not_answer_is_told_with_its_address_and_the_clients_reason() -> None:
    with pytest.raises(UnreachableError, match=r"^127\.0\.0\.1:1 does not answer: .*Connection refused"):
        require_topics(KafkaSettings("127.0.0.1:1"), (), timeout_s=0.5)


def test_an_option_that_no_client_takes_ends_in_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ("--set", "kafka.options.security.protocl=SSL")
    for typed in (("topics", "diff"), ("fleet", "list"), ("tail", "--no-follow"), ("dead-letters",)):
        monkeypatch.setattr("sys.argv", ["headrace", *typed, *wrong])
        with pytest.raises(SystemExit, match="1"):
            cli.main()
        said = capsys.readouterr().err
        assert "kafka.options.'security.protocl' is no option of librdkafka; the nearest is security.protocol" in said
        assert "Traceback" not in said


@pytest.mark.parametrize(
    "typed",
    [
        ("freeze", "--reason", "r", "--for", "banana"),
        ("tail", "--since", "banana"),
        ("console", "--token-file", "/nope"),
        ("console", "--listen", "banana"),
        ("solve", "mars"),
        ("tail", "--set", "solver.perid_ms=3"),
    ],
)
def test_what_is_typed_and_cannot_be_used_is_status_2_whichever_layer_finds_it(
    typed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["headrace", *typed])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert typed[-1].rpartition("=")[0] in capsys.readouterr().err


def test_setting_up_says_everything_on_standard_error(tmp_path: Path) -> None:
    """Standard output is that of the command: `make demo DEMO="--json" | jq`."""
    fake = '#!/bin/sh\n[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\nexit 0\n'
    python = tmp_path / "bin" / "python3.13"
    python.parent.mkdir()
    python.write_text(fake)
    python.chmod(0o755)
    done = subprocess.run(
        ("bash", str(ROOT / "infra/setup.sh"), "python", str(tmp_path / "venv")),
        env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert "setup: installed in" in done.stderr


def test_the_help_of_solve_names_every_policy_there_is() -> None:
    said = " ".join(run("solve", "--help").output.split())
    assert f"Policy: {', '.join(policy_names())}." in said
