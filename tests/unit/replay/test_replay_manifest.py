"""A folder of history that was edited, cut or mixed up: what is wrong with it is told by name."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.replay.sources.manifest import FILE
from headrace.schemas.errors import HeadraceError, InvalidInputError
from replay_history import recorded_run

EDITS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda plain: plain.update(ticks="many"), "ticks is 'many'"),
    (lambda plain: plain.pop("from_ms"), "from_ms is missing"),
    (lambda plain: plain.update(parts={}), "parts is {}"),
    (lambda plain: plain["topics"].update(prefix=None), "topics.prefix is None"),
    (lambda plain: plain["parts"][0].update(role="flet"), "role is 'flet'"),
    (lambda plain: plain["parts"][0].update(partition=-1), "parts[0].partition is -1"),
    (lambda plain: plain["parts"][0].update(records=True), "parts[0].records is True"),
    (lambda plain: plain["parts"][0].update(file="../../elsewhere.avro"), "file is '../../elsewhere.avro'"),
    (lambda plain: plain["parts"].append("fleet"), "is 'fleet'; expected an object"),
    (lambda plain: plain["findings"].append({"found": "ODD"}), "found is 'ODD'"),
]


def refused(*arguments: object) -> str:
    """What a command says that does not do what it was asked for: one message, never a traceback."""
    result = CliRunner().invoke(headrace, [str(each) for each in arguments])
    assert isinstance(result.exception, HeadraceError), repr(result.exception) + result.output
    return str(result.exception)


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    plain = orjson.loads((folder / FILE).read_bytes())
    change(plain)
    (folder / FILE).write_bytes(orjson.dumps(plain))


@pytest.mark.parametrize(("change", "told"), EDITS)
@pytest.mark.parametrize("command", [("replay", "verify", "--dir"), ("import",)])
def test_a_manifest_that_was_edited_is_refused_with_the_field_and_its_value(
    change: Callable[[dict[str, Any]], object], told: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    edited(folder, change)
    assert told in refused(*command, folder)


def test_every_problem_of_a_manifest_is_told_at_once(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    edited(folder, lambda plain: plain.update(ticks=None, topics=[], parts=None))
    told = refused("import", folder)
    assert all(name in told for name in ("ticks is None", "topics is []", "parts is None"))


def test_a_manifest_that_names_a_missing_file_is_refused_with_the_file(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    next((folder / "fleet").iterdir()).unlink()
    told = refused("replay", "verify", "--dir", folder, "--processes", 1)
    assert "fleet/" in told
    assert "No such file" in told


@pytest.mark.parametrize("processes", [1, 2])
def test_a_damaged_file_is_refused_in_any_number_of_processes(processes: int, tmp_path: Path) -> None:
    folder = recorded_run(4).write(tmp_path / "history")
    file = next((folder / "state.engine").iterdir())
    whole = file.read_bytes()
    # Its length is right, and so is the end of its block: only who unpacks it finds out.
    file.write_bytes(whole[:-60] + bytes(40) + whole[-20:])
    assert "is damaged" in refused("replay", "verify", "--dir", folder, "--processes", processes)


def test_a_folder_that_holds_no_history_is_refused_before_a_broker_is_asked(tmp_path: Path) -> None:
    nobody = ("--bootstrap", "127.0.0.1:1")
    assert "holds no history" in refused("import", tmp_path, *nobody)
    assert "--from is 'yesterday'" in refused("export", "--from", "yesterday", "--out", tmp_path / "o", *nobody)
    assert "not after its beginning" in refused(
        "export", "--from", "1h", "--to", "2h", "--out", tmp_path / "o", *nobody
    )
    assert not (tmp_path / "o").exists()


def test_a_broker_that_does_not_answer_is_told_by_its_address_and_no_folder_is_left(tmp_path: Path) -> None:
    nobody = ("--bootstrap", "127.0.0.1:1")
    assert "127.0.0.1:1 does not answer" in refused("export", "--from", "1h", "--out", tmp_path / "o", *nobody)
    assert not (tmp_path / "o").exists()
    assert "127.0.0.1:1 does not answer" in refused("import", recorded_run(2).write(tmp_path / "h"), *nobody)


def test_bad_input_that_a_process_of_the_pool_finds_is_told_by_the_first_one() -> None:
    # A copy is made as an exception is that comes from another process: by what it says that it is made of.
    found = copy.copy(InvalidInputError("policy", ("policy is 'x'", "k is -1")))
    assert found.problems == ("policy is 'x'", "k is -1")
    assert str(found) == str(InvalidInputError("policy", ("policy is 'x'", "k is -1")))
