"""Times of another unit than their column says are doubted, in the table and in JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace

ROWS = ((1, 1, 50, 10), (5, 5, 60, 12), (10, 10, 90, 16), (20, 15, 900, 40))


def fitted(folder: Path, ttft: float, tpot: float, *flags: str) -> str:
    file = folder / "load.csv"
    rows = "".join(f"{offered},{done},100,{a * ttft},{b * tpot}\n" for offered, done, a, b in ROWS)
    file.write_text(f"offered_rps,completed_rps,output_tokens,ttft_ms,tpot_ms\n{rows}", "utf-8")
    result = CliRunner().invoke(headrace, ("profile", "fit", str(file), *flags))
    assert result.exit_code == 0
    return result.stdout


def test_seconds_in_columns_of_milliseconds_are_doubted_and_fitted_all_the_same(tmp_path: Path) -> None:
    doubts = [line for line in fitted(tmp_path, 0.001, 0.001).splitlines() if line.startswith("warning: ")]
    unknown = "is known of any GPU: are these seconds?"
    assert doubts == [
        f"warning: load: the lowest TTFT is 0.05 ms, and none below 1 ms {unknown}",
        f"warning: load: the lowest TBOT is 0.0099 ms, and none below 0.1 ms {unknown}",
    ]
    told = json.loads(fitted(tmp_path, 1.0, 0.001, "--json"))["fitted"][0]["warnings"]
    assert told == [f"the lowest TBOT is 0.0099 ms, and none below 0.1 ms {unknown}"]


@pytest.mark.parametrize("tpot", [1.0, 0.0])
def test_times_that_some_engine_has_or_that_none_is_needed_for_are_not_doubted(tmp_path: Path, tpot: float) -> None:
    assert "are these seconds?" not in fitted(tmp_path, 1.0, tpot)
