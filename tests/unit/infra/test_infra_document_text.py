"""Documents that no parser can read are problems with a reason, not tracebacks."""

from pathlib import Path

import pytest

from headrace.infra.configuration.document_text import MAX_DEPTH, TOO_DEEP, read_json, read_toml
from headrace.infra.configuration.sources import read_env, read_file, read_flags
from headrace.infra.fleet_records.file import read_fleet_file
from headrace.infra.traces.lines import json_lines
from headrace.schemas.errors import InvalidInputError

DEEP_JSON = "[" * 100_000
DEEP_TOML = "a = " + "[" * 50_000
LONG_NUMBER = "a = " + "1" * 5_000


def test_what_is_nested_too_deeply_is_a_value_error_that_says_so() -> None:
    with pytest.raises(ValueError, match=TOO_DEEP):
        read_json(DEEP_JSON)
    with pytest.raises(ValueError, match=TOO_DEEP):
        read_toml(DEEP_TOML)


@pytest.mark.parametrize(("name", "text"), [("f.json", DEEP_JSON), ("f.toml", DEEP_TOML)])
def test_a_fleet_file_nested_too_deeply_is_refused_by_its_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=name) as caught:
        read_fleet_file(tmp_path / name)
    assert caught.value.problems == (TOO_DEEP,)


@pytest.mark.parametrize("text", [DEEP_TOML, LONG_NUMBER])
def test_a_configuration_file_that_no_parser_can_take_is_one_problem(tmp_path: Path, text: str) -> None:
    problems: list[str] = []
    (tmp_path / "headrace.toml").write_text(text)
    assert read_file(tmp_path / "headrace.toml", problems) == {}
    assert len(problems) == 1
    assert "headrace.toml is no TOML" in problems[0]


def test_a_variable_and_a_flag_nested_too_deeply_are_problems_by_their_names() -> None:
    problems: list[str] = []
    read_env({"HEADRACE_SOLVER__CLASSES": DEEP_JSON}, problems)
    read_flags({"solver.classes": DEEP_JSON}, problems)
    assert [problem.partition(" begins")[0] for problem in problems] == [
        "HEADRACE_SOLVER__CLASSES",
        "--set solver.classes",
    ]


def test_keys_with_too_many_parts_are_nested_too_deeply() -> None:
    assert read_toml(".".join("a" * MAX_DEPTH) + " = 0")
    with pytest.raises(ValueError, match=TOO_DEEP):
        read_toml(".".join("a" * (MAX_DEPTH + 1)) + " = 0")


def test_a_line_of_a_trace_nested_too_deeply_is_an_empty_object(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text(f'{{"a": 1}}\n{DEEP_JSON}\n')
    assert list(json_lines(tmp_path / "trace.jsonl")) == [(1, {"a": 1}), (2, {})]
