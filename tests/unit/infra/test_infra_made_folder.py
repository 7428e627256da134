"""A folder that cannot be made is one problem, in the words of the flag or setting that named it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.made_folder import made_folder


def test_a_folder_is_made_with_all_above_it_and_left_empty(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert made_folder(folder, "--out") == folder
    assert made_folder(folder, "--out") == folder
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("inside", ["file", "file/x", "\0"])
def test_what_cannot_be_a_folder_is_told_by_its_flag(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match=r"--out is '.*'; a folder that can be written: "):
        made_folder(tmp_path / inside, "--out")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("demo", "--folder", "{}"), "--folder"),
        (("broker", "up", "--kind", "apache", "--data-dir", "{}"), "--data-dir"),
        (("streams", "--set", "streams.data_dir={}"), "streams.data_dir"),
        (("streams", "--workers", "2", "--set", "streams.data_dir={}"), "streams.data_dir"),
    ],
)
def test_a_command_refuses_a_folder_before_it_starts_anything(
    tmp_path: Path, command: Sequence[str], name: str
) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "x")
    result = CliRunner().invoke(headrace, [part.format(folder) for part in command])
    assert isinstance(result.exception, InvalidInputError)
    assert str(result.exception).startswith(f"{name}: 1 problem")
    assert folder in str(result.exception)
