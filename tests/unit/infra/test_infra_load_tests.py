"""Load tests in CSV files: three forms, and every problem at once, by row."""

import gzip
from pathlib import Path

import pytest

from headrace.infra.load_tests import csv_table
from headrace.infra.load_tests.csv_table import read_csv
from headrace.infra.load_tests.forms import load_tests
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.profile.load_test import LoadTest


def read(folder: Path, text: str, **given: str) -> tuple[LoadTest, ...]:
    path = folder / "made.csv"
    path.write_text(text, "utf-8")
    return load_tests(read_csv(str(path)), given)


def problems(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        read(folder, text)
    return caught.value.problems


def test_an_open_loop_file_gives_rates_and_seconds(tmp_path: Path) -> None:
    (test,) = read(
        tmp_path, "offered_rps,completed_rps,output_tokens,ttft_ms,e2e_s\n10,9.9,60,45,1.5\n\n20,19.5,60,60,2\n"
    )
    first, second = test.stages
    assert (first.offered_rps, first.completed_rps, first.concurrency) == (10, 9.9, None)
    assert (first.ttft_s, first.e2e_s, first.place) == (pytest.approx(0.045), 1.5, "row 2")
    # The blank line counts as a line.
    assert second.place == "row 4"
    assert (test.labels.profile_id, test.labels.hardware, test.pool) == ("made", "unknown", "made")


def test_a_closed_loop_file_gives_rates_by_littles_law_unless_they_were_counted(tmp_path: Path) -> None:
    (test,) = read(
        tmp_path, "concurrency,completed_rps,output_tokens,ttft_s,tbot_ms\n8,,100,0.5,15\n16,7.5,100,0.5,20\n"
    )
    # 0.5 s + 100 x 15 ms = 2 s: 8 in service are 4 a second.
    assert [s.completed_rps for s in test.stages] == pytest.approx([4.0, 7.5])
    assert [s.e2e_s for s in test.stages] == pytest.approx([2.0, 2.5])


def test_curves_of_one_hardware_model_and_configuration_are_one_pool(tmp_path: Path) -> None:
    text = "curve,hardware,model,configuration,concurrency,output_tokens,ttft_ms,e2e_ms\n" + "".join(
        f"{curve},{hardware},m,{configuration},8,10,100,200\n"
        for curve, hardware, configuration in (("a 1", "H100", "fp8"), ("b", "H100", "fp8"), ("c", "H100", "bf16"))
    )
    one, two, three = read(tmp_path, text, source="bench of May")
    assert (one.name, one.labels.profile_id, one.labels.source) == ("a 1", "a-1", "bench of May")
    assert one.pool == two.pool != three.pool


def test_the_shipped_tables_are_read_as_their_sources_define_them() -> None:
    silicon = {test.name: test for test in load_tests(read_csv("silicon_curves_agg"), {})}
    assert len(silicon) == 224
    first = silicon["0"].stages[0]
    # 338.34 ms + 1023 x 6.332 ms for 1024 tokens; the file's own estimate of the rate is 0.5869.
    assert first.e2e_s == pytest.approx(6.816, abs=1e-3)
    assert first.completed_rps == pytest.approx(0.5869, abs=1e-4)
    assert silicon["0"].labels.hardware == "4x b200_sxm"
    perf = {test.name: test for test in load_tests(read_csv("inference_perf_h100_llama8b"), {})}
    assert perf["vllm+eagle"].labels.profile_id == "h100-llama-3.1-8b-vllm-eagle"
    # Not the 7.5 ms of the file's tpot: (1021.3 - 50.5) ms / 62.3 tokens.
    assert perf["vllm"].stages[3].tbot_s == pytest.approx(0.01558, abs=1e-5)


def test_every_bad_cell_is_told_at_once_by_row(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        "offered_rps,concurrency,completed_rps,output_tokens,ttft_ms,e2e_ms\n"
        "10,,x,60,45,1500\n10,,9,60,45,40\n10,5,9,60,45,1500\n,8,,60,,1500\n,8,,60,nan,1500\n,8,,many,10,1500\n",
    )
    assert said == (
        "row 2: completed_rps is 'x'; a number",
        "row 3: e2e_ms is 40, below its ttft_ms 45",
        "row 4: offered_rps or concurrency, one of them",
        "row 7: output_tokens is 'many'; a number",
    )


def test_a_row_of_which_something_was_not_measured_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text("curve_id,osl,concurrency,ttft_ms,tpot_ms\na,10,1,5,2\na,10,2,,2\na,10,4,9,NaN\na,10,8,20,3\n")
    told: list[str] = []
    (test,) = load_tests(read_csv(str(path)), {}, told.append)
    assert [stage.concurrency for stage in test.stages] == [1.0, 8.0]
    assert told == ["row 3 is left out: ttft not measured", "row 4 is left out: tpot_ms not measured"]
    assert problems(tmp_path, "osl,concurrency,ttft_ms,tpot_ms\n10,1,,2\n") == ("row 2 is left out: ttft not measured",)


@pytest.mark.parametrize(
    "header",
    [
        "curve_id,osl,concurrency,ttft_ms,tpot_ms",
        "Curve ID,OSL,Concurrency,TTFT (ms),TPOT (ms)",
        "curve,output_len,max_concurrency,mean_ttft_ms,mean_tpot_ms",
        "curve_id;output_tokens;concurrent-requests;ttft_ms;tpot_ms",
        "# measured on a Monday\n# by nobody\ncurve_id\tosl\tconcurrency\tttft_ms\ttpot_ms",
    ],
)
def test_columns_are_known_by_other_names_and_cells_apart_by_other_marks(tmp_path: Path, header: str) -> None:
    mark = next(each for each in ",;\t" if each in header.splitlines()[-1])
    (test,) = read(tmp_path, header + "\n" + mark.join(["a", "11", "4", "100", "20"]) + "\n")
    (stage,) = test.stages
    assert test.name == "a"
    # 100 ms and ten more tokens of 20 ms; four inside.
    assert (stage.ttft_s, stage.e2e_s) == pytest.approx((0.1, 0.3))
    assert stage.completed_rps == pytest.approx(4 / 0.3)


def test_what_vllm_bench_writes_is_read_as_an_open_or_a_closed_loop_row_by_row(tmp_path: Path) -> None:
    header = "request_rate,max_concurrency,request_throughput,mean_ttft_ms,mean_tpot_ms,output_len\n"
    (test,) = read(tmp_path, f"{header}8,None,7.9,100,20,11\ninf,4,13,100,20,11\n")
    opened, closed = test.stages
    assert (opened.offered_rps, opened.completed_rps, opened.concurrency) == (8.0, 7.9, None)
    assert (closed.offered_rps, closed.completed_rps, closed.concurrency) == (None, 13.0, 4.0)
    # 100 ms, and 20 ms for each token but the first.
    assert [stage.e2e_s for stage in test.stages] == pytest.approx([0.3, 0.3])


def test_what_genai_perf_calls_its_times_is_known(tmp_path: Path) -> None:
    named = "concurrency,output_sequence_length,time_to_first_token_ms"
    (test,) = read(tmp_path, f"{named},inter_token_latency_ms\n4,11,100,20\n")
    assert test.stages[0].e2e_s == pytest.approx(0.3)
    (test,) = read(tmp_path, f"{named},request_latency_ms\n4,11,100,300\n")
    assert test.stages[0].e2e_s == pytest.approx(0.3)


def test_seconds_are_read_in_every_form_and_a_column_keeps_a_name_that_it_has(tmp_path: Path) -> None:
    (test,) = read(tmp_path, "osl,concurrency,ttft_s,tpot_s\n11,4,0.1,0.02\n")
    assert test.stages[0].e2e_s == pytest.approx(0.3)
    (test,) = read(tmp_path, "osl,output_tokens,concurrency,mean_ttft_ms,ttft_ms,e2e_ms\n9,60,4,7,45,1500\n")
    assert (test.stages[0].output_tokens, test.stages[0].ttft_s) == (60.0, pytest.approx(0.045))


def test_a_bad_cell_below_remarks_is_told_by_its_line_in_the_file(tmp_path: Path) -> None:
    assert problems(tmp_path, "# one\n# two\nosl,concurrency,ttft_ms,tpot_ms\nx,1,1,1\n") == (
        "row 4: osl is 'x'; a number",
    )


def test_missing_columns_are_told_at_once_with_the_nearest(tmp_path: Path) -> None:
    assert problems(tmp_path, "offered_rps,output_token,ttft\n1,2,3\n") == (
        "column 'output_tokens' is missing; the nearest is 'output_token'",
        "none of the columns ttft_ms, ttft_s; the nearest is 'ttft'",
        "none of the columns e2e_ms, e2e_s, tbot_ms, tbot_s, tpot_ms, tpot_s",
        "column 'completed_rps' is missing",
    )
    (only,) = problems(tmp_path, "tpot_ms,ttft_ms,concurrency\n1,2,3\n")
    assert only == "none of the columns osl, output_tokens"


def test_a_load_that_is_missing_is_told_by_both_ways_of_saying_it_and_by_the_nearest_of_either(tmp_path: Path) -> None:
    assert problems(tmp_path, "curve,ofered_rps,completed_rps,output_tokens,ttft_ms,tpot_ms\na,1,1,100,50,10\n") == (
        "none of the columns offered_rps, concurrency; the nearest is 'ofered_rps'",
    )
    assert problems(tmp_path, "Concurency,output_tokens,ttft_ms,tpot_ms\n1,100,50,10\n") == (
        "none of the columns offered_rps, concurrency; the nearest is 'Concurency'",
    )


def test_rows_of_another_length_are_told_with_all_else_in_the_files_own_columns_and_units(tmp_path: Path) -> None:
    said = problems(
        tmp_path,
        "Request Rate,completed_rps,output_tokens,Mean TTFT (ms),tpot_ms\n"
        "1,1,100,50,10\n5,5,100\n10,-9.9,100,-60,-1\n20,20,100,80,14,7\n30,inf,0,80,9e9\n",
    )
    assert said == (
        "row 3 has 3 cells; the header has 5",
        "row 4: Mean TTFT (ms) is -60; above 0, at most 1e+09",
        "row 4: tpot_ms is -1; at least 0, at most 1e+09",
        "row 4: completed_rps is -9.9; above 0, at most 1e+09",
        "row 5 has 6 cells; the header has 5",
        "row 6: output_tokens is 0; above 0, at most 1e+09",
        "row 6: tpot_ms is 9e9; at least 0, at most 1e+09",
        "row 6: completed_rps is inf; above 0, at most 1e+09",
    )
    assert problems(tmp_path, "concurrency,output_tokens,ttft_s\n1,2\n") == (
        "none of the columns e2e_ms, e2e_s, tbot_ms, tbot_s",
        "row 2 has 2 cells; the header has 3",
    )


def test_a_whole_that_is_out_of_bounds_is_not_told_as_a_column_that_the_file_does_not_have(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, "osl,concurrency,ttft_s,tpot_s\n1001,4,1,3600\n")
    assert said == "row 2: the end-to-end time of all tokens is 3600001.0; 1e-12 to 1e+06"


def test_a_row_without_a_load_is_left_out_by_the_columns_that_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text("concurrency,output_tokens,ttft_s,e2e_s\n1,9,1,2\n,9,1,2\n", "utf-8")
    told: list[str] = []
    (test,) = load_tests(read_csv(str(path)), {}, told.append)
    assert (len(test.stages), told) == (1, ["row 3 is left out: concurrency not measured"])


def test_one_curve_of_two_hardwares_is_refused(tmp_path: Path) -> None:
    text = "curve,hardware,concurrency,output_tokens,ttft_ms,e2e_ms\na,x,1,1,1,2\na,y,1,1,1,2\n"
    assert problems(tmp_path, text) == ("curve 'a' has rows of more than one hardware, model or configuration",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("a,b\n", "there is no row below the header"),
        ("a,a\n1,2\n", "column 'a' is given 2 times"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert problems(tmp_path, text) == (said,)


def test_a_packed_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,b\n 1 ,2\n".encode(), mtime=0))
    table = read_csv(str(path))
    assert (table.name, table.columns, dict(table.rows[0].cells)) == ("x", ("a", "b"), {"a": "1", "b": "2"})


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x1f\x8bnot gzip", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9]])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_csv(str(path))


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        read_csv(str(tmp_path / "none.csv"))
    monkeypatch.setattr(csv_table, "MAX_BYTES", 10)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InvalidInputError, match="more than 10 bytes"):
        read_csv(str(tmp_path / "x.csv"))


def test_a_cell_longer_than_csv_allows_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, f"a,b\n{'x' * 200_000},1\n") == ("row 2: field larger than field limit (131072)",)
