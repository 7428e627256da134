"""Times of another unit than their column says are doubted, in the table and in JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra.cli import headrace

ROWS = ((1, 1, 50, 10), (5, 5, 60, 12), (10, 10, 90, 16), (20, 15, 900, 40))


def run(folder: Path, header: str, rows: str, *flags: str) -> Result:
    file = folder / "load.csv"
    file.write_text(f"{header}\n{rows}", "utf-8")
    return CliRunner().invoke(headrace, ("profile", "fit", str(file), *flags))


def fitted(folder: Path, ttft: float, tpot: float, *flags: str, columns: str = "ttft_ms,tpot_ms") -> str:
    rows = "".join(f"{offered},{done},100,{a * ttft},{b * tpot}\n" for offered, done, a, b in ROWS)
    result = run(folder, f"offered_rps,completed_rps,output_tokens,{columns}", rows, *flags)
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


TTFT = "the lowest TTFT is 50 s, and none above 10 s is known but of prompts of some hundred thousand tokens"
TBOT = "is known of any GPU: are these milliseconds, or the end-to-end times?"


@pytest.mark.parametrize("column", ["tpot_s", "tbot_s"])
def test_milliseconds_in_columns_of_seconds_are_doubted_and_fitted_all_the_same(tmp_path: Path, column: str) -> None:
    columns = f"ttft_s,{column}"
    told = json.loads(fitted(tmp_path, 1.0, 1.0, "--json", columns=columns))["fitted"][0]["warnings"]
    lowest = {"tpot_s": "9.9", "tbot_s": "10"}[column]
    tbot = f"the lowest TBOT, (e2e - TTFT) / tokens, is {lowest} s, and none above 1 s {TBOT}"
    assert told == [f"{TTFT}: are these milliseconds?", tbot]
    assert f"warning: load: {tbot}\n" in fitted(tmp_path, 0.001, 1.0, columns=columns)
    one = fitted(tmp_path, 1.0, 0.001, columns=columns)
    assert f"warning: load: {TTFT}: are these milliseconds?\n" in one
    assert "TBOT, (e2e" not in one
    assert "are these" not in fitted(tmp_path, 0.001, 0.001, columns=columns)


def test_end_to_end_times_of_another_unit_are_doubted_by_the_time_between_tokens_that_they_come_to(
    tmp_path: Path,
) -> None:
    told = fitted(tmp_path, 0.001, 100.0, columns="ttft_s,e2e_s")
    assert f"warning: load: the lowest TBOT, (e2e - TTFT) / tokens, is 10 s, and none above 1 s {TBOT}\n" in told
    told = fitted(tmp_path, 0.001, 0.1, columns="ttft_ms,e2e_ms")
    assert "the lowest TTFT is 0.05 ms, and none below 1 ms is known of any GPU: are these seconds?" in told


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        ("ttft_s,e2e_s", "350,1.2", "e2e_s is 1.2, below its ttft_s 350"),
        ("ttft_ms,e2e_ms", "350,1.2", "e2e_ms is 1.2, below its ttft_ms 350"),
        ("ttft_mean_ms,e2e_mean_ms", "350,1.2", "e2e_mean_ms is 1.2, below its ttft_mean_ms 350"),
    ],
)
def test_a_whole_request_that_is_hundreds_of_times_below_its_first_token_is_refused_with_the_doubt(
    tmp_path: Path, columns: str, row: str, said: str
) -> None:
    names = (
        "requested_rps,completed_rps,output_mean" if "mean" in columns else "offered_rps,completed_rps,output_tokens"
    )
    result = run(tmp_path, f"{names},{columns}", f"1,1,100,{row}\n")
    assert f"row 2: {said}; is one of them in seconds, and the other in milliseconds?" in str(result.exception)


@pytest.mark.parametrize("tpot", [1.0, 0.0])
def test_times_that_some_engine_has_or_that_none_is_needed_for_are_not_doubted(tmp_path: Path, tpot: float) -> None:
    assert "are these" not in fitted(tmp_path, 1.0, tpot)


def test_loads_that_are_in_another_order_than_their_times_are_doubted_in_the_table_and_in_json(tmp_path: Path) -> None:
    rows = "".join(
        f"{rps},{rps},200,{ttft},{tpot}\n" for rps, ttft, tpot in ((2, 400, 20), (9, 300, 21), (18, 200, 23))
    )
    header = "offered_rps,completed_rps,output_tokens,ttft_ms,tpot_ms"
    falls = "TTFT falls as load grows, from 400 ms at 2 rps to 200 ms at 18 rps; the nearest curve that rises ever more"
    table = run(tmp_path, header, rows)
    assert table.exit_code == 0
    assert f"\nwarning: load: {falls}, as the fitted one does, is " in table.stdout
    (said, *_) = json.loads(run(tmp_path, header, rows, "--json").stdout)["fitted"][0]["warnings"]
    assert said.startswith(falls)
