"""A standard stream that is closed or full ends in a line, not in a traceback."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.infra.command_line.standard_streams import why_unwritten

_HEADRACE = f"{sys.executable} -c 'from headrace.infra.cli import main; main()'"


def run(arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", f"{_HEADRACE} {arguments}"], capture_output=True, text=True, check=False)


def test_a_closed_standard_input_is_empty() -> None:
    result = run("solve - <&-")
    assert result.returncode == 2
    assert result.stderr.startswith("headrace: standard input: 1 problem\n  - no JSON")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_standard_output_is_told_in_one_line() -> None:
    result = run("solve three-regions --print >/dev/full")
    assert (result.returncode, result.stderr) == (
        1,
        "headrace: the output cannot be written: No space left on device\n",
    )


def test_a_command_that_asks_whether_its_output_is_a_terminal_runs_where_it_is_closed() -> None:
    result = run("demo --folder /dev/null/x --json >&-")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "/dev/null/x" in result.stderr


def test_a_file_that_cannot_be_written_is_named() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "weights.json")
    assert why_unwritten(full) == "weights.json cannot be written: No space left on device"


def test_another_error_is_not_taken_for_one_of_writing() -> None:
    assert why_unwritten(OSError(errno.ECONNREFUSED, "Connection refused")) is None
    assert why_unwritten(ValueError("no")) is None
