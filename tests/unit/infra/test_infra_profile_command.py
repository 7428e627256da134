"""`headrace profile fit`: the table, the record, the drawing, and what is refused."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.infra.commands.profile import command
from headrace.infra.fleet_records.file import read_fleet_file
from headrace.schemas.check_fleet import check_profile
from headrace.schemas.errors import InvalidInputError

PNG = b"\x89PNG\r\n\x1a\n"
HEADER = "curve,concurrency,output_tokens,ttft_ms,e2e_ms\n"
# 1 s and 0.1 s more for each in service; a quarter of it is TTFT.
GOOD = "".join(f"good,{n},10,{(1000 + 100 * n) / 4},{1000 + 100 * n}\n" for n in (5, 10, 30, 60, 90))
BAD = "".join(f"bad,{n},10,100,{e2e}\n" for n, e2e in ((8, 8000), (16, 6000), (32, 3000), (64, 2000)))


def fit(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["fit", *map(str, arguments)])


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "measured.csv"
    path.write_text(HEADER + GOOD)
    return path


def test_the_table_tells_capacity_range_and_errors_and_the_curve_of_an_only_one(measured: Path) -> None:
    result = fit(measured)
    assert result.exit_code == 0, result.output
    header, line = result.output.splitlines()[:2]
    assert header.split()[:3] == ["profile", "stages", "capacity"]
    assert line.split()[:5] == ["good", "5/5", ">=", "9", "rps"]
    assert "a lower bound" in result.output
    assert "extrapolated" in result.output
    # The last stage: 90 in service take 10 s, at 9 rps.
    assert result.output.splitlines()[-1].split()[0:2] == ["1.00", "9"]
    assert float(result.output.splitlines()[-1].split()[4]) == pytest.approx(10_000, rel=0.01)


def test_the_written_file_is_one_that_fleet_apply_reads(measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "profiles.toml"
    result = fit(measured, "--out", out, "--hardware", '4x "B200"', "--model", "m é", "--source", "here", "--json")
    assert result.exit_code == 0, result.output
    (profile,) = read_fleet_file(out).profiles
    assert check_profile(profile) == ()
    assert (profile.hardware, profile.model, profile.source) == ('4x "B200"', "m é", "here")
    (told,) = json.loads(result.output)["fitted"]
    assert told["profile"]["capacity_rps"] == profile.capacity_rps == pytest.approx(9.0)
    assert told["profile"]["ttft_s"] == list(profile.ttft_s)
    assert (told["wall_reached"], told["saturated_stages"]) == (False, [])
    assert [stage["place"] for stage in told["stages"]] == [f"row {i}" for i in range(2, 7)]


def test_two_stages_leave_the_errors_left_out_untold_and_are_warned_of(tmp_path: Path) -> None:
    path, out = tmp_path / "two.csv", tmp_path / "two.toml"
    path.write_text(HEADER + "".join(GOOD.splitlines(keepends=True)[:2]))
    result = fit(path, "--out", out)
    assert result.exit_code == 0
    assert "warning: good: 2 stages fit whatever they are" in result.output
    assert "left_out" not in out.read_text()
    assert read_fleet_file(out).profiles[0].left_out_error_median is None


def test_a_fit_that_predicts_no_stage_it_has_not_seen_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    # Three stages a decade apart: any curve passes through them, and two do not tell the third.
    path.write_text(HEADER + "".join(f"three,{n},10,{25 * (10 + n)},{100 * (10 + n)}\n" for n in (1, 10, 90)))
    result = fit(path)
    assert result.exit_code == 0
    assert "warning: three: a stage left out is missed by " in result.output
    assert "warning" not in fit("inference_perf_h100_llama8b", "--curve", "vllm").output


def test_a_refused_curve_is_told_with_reasons_and_the_others_are_written(measured: Path, tmp_path: Path) -> None:
    measured.write_text(HEADER + GOOD + BAD)
    out = tmp_path / "profiles.toml"
    result = fit(measured, "--out", out)
    assert result.exit_code == 1
    assert "refused bad:" in result.output
    assert "the p90 error is" in result.output
    assert "row 7 at 1 rps: 8 s measured" in result.output
    assert [p.profile_id for p in read_fleet_file(out).profiles] == ["good"]
    alone = fit(measured, "--curve", "bad", "--out", tmp_path / "none.toml", "--json")
    assert alone.exit_code == 1
    assert [each["profile_id"] for each in json.loads(alone.output)["refused"]] == ["bad"]
    assert not (tmp_path / "none.toml").exists()


@pytest.mark.parametrize(
    ("ending", "start"), [("png", PNG), ("PNG", PNG), ("svg", b"<?xml"), ("html", b"<!doctype html>")]
)
def test_a_drawing_is_one_file_of_its_kind_and_the_same_every_time(tmp_path: Path, ending: str, start: bytes) -> None:
    first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
    for path in (first, second):
        result = fit("inference_perf_h100_llama8b", "--variant", "vllm", "--plot", path)
        assert result.exit_code == 0, result.output
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    if ending == "html":
        text = first.read_text()
        assert "<title>h100-llama-3.1-8b-vllm</title>" in text
        assert "<script" not in text
        assert 'src="' not in text


def test_a_curve_may_be_named_as_in_its_file_or_as_in_the_record(measured: Path) -> None:
    measured.write_text((HEADER + GOOD).replace("good", "good one"))
    for name in ("good one", "good-one"):
        assert fit(measured, "--curve", name).exit_code == 0
    result = fit(measured, "--curve", "good-on", "--curve", "zzz")
    assert isinstance(result.exception, InvalidInputError)
    assert result.exception.problems == (
        "'good-on' is no curve of the file; the nearest is 'good-one'",
        "'zzz' is no curve of the file",
    )


def test_what_cannot_be_drawn_or_written_is_refused(measured: Path, tmp_path: Path) -> None:
    pdf = fit(measured, "--plot", tmp_path / "x.pdf")
    assert isinstance(pdf.exception, InvalidInputError)
    assert "it ends in one of .png, .svg, .html" in str(pdf.exception)
    many = fit("silicon_curves_agg", "--plot", tmp_path / "x.png")
    assert isinstance(many.exception, InvalidInputError)
    assert "224 curves; at most 24" in str(many.exception)
    for flag, name in (("--plot", "x.png"), ("--out", "x.toml")):
        nowhere = fit(measured, flag, tmp_path / "none" / name)
        assert isinstance(nowhere.exception, InvalidInputError)
        assert "cannot be written" in str(nowhere.exception)


def test_the_forms_of_the_file_are_printed_on_demand() -> None:
    result = fit("--form")
    assert result.exit_code == 0
    assert "offered_rps and completed_rps (open loop), or concurrency" in result.output
