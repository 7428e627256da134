"""The report: one document, valid by its schema; a page that asks nobody for anything; CSV that says the same."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest

from headrace.replay.core.played import PlayedTick
from headrace.replay.report.differences import decider, largest_differences
from headrace.replay.report.document import Origin, document
from headrace.replay.report.legend import KINDS, legend_lines
from headrace.replay.report.text_table import table_lines
from headrace.replay.report.write import read_document, schema_text, write_report
from headrace.replay.score.comparison import compare
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet, Shown
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.variant import score_variant
from headrace.replay.score.variant_score import VariantScore
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.problem import Problem
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from played_ticks import START_MS, played
from solver_problems import engine, problem, profile, row

if TYPE_CHECKING:
    from headrace.schemas.weights import Snapshot

LP = Glop(threads=1)
LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
HOSTILE = "</script><script>alert(1)</script>"


def at(second: int) -> Problem:
    links: dict[tuple[str, str], float | None] = {("A", "s1"): 4.0, ("A", "s2"): 14.0}
    demand = 8.0 if second % 40 < 20 else 12.0
    return problem([row("A", demand)], [engine("e1", "s1"), engine("e2", "s2")], links, (LINE,))


def by(settings: SolverSettings, seconds: int) -> Iterator[PlayedTick]:
    previous: Snapshot | None = None
    for s in range(seconds):
        now_ms = START_MS + 1000 * s
        tick = solve_tick(at(s), previous, settings, LP, TickStamp(1, s + 1, now_ms))
        yield PlayedTick(now_ms, at(s), tick.snapshot, tick.record)
        previous = tick.snapshot


@cache
def told() -> dict[str, Any]:
    settings = {"lp": SolverSettings(period_ms=1000), "near": SolverSettings(period_ms=1000, policy="nearest")}
    recorded = score_variant(HOSTILE, (played(float(s), at(s), {"A": {"e1": 0.5, "e2": 0.5}}) for s in range(100)))
    others = [score_variant(name, by(chosen, 100)) for name, chosen in settings.items()]
    comparison = compare(HOSTILE, [recorded, *others], configurations={"lp": {"policy": "lp"}})
    deciders = {name: decider(chosen, LP) for name, chosen in settings.items()}
    return document(
        comparison,
        Origin("A & B <i>", "by hand", closed_loop=False, notes=("a note",), complete=False),
        largest_differences(recorded, others, deciders),
    )


def test_the_document_is_what_its_schema_says() -> None:
    # The validator knows draft 7, which differs in nothing that the schema uses.
    check = fastjsonschema.compile(json.loads(schema_text()) | {"$schema": "http://json-schema.org/draft-07/schema"})
    whole = told()
    check(whole)
    for field in json.loads(schema_text())["required"]:
        with pytest.raises(fastjsonschema.JsonSchemaValueException, match=field):
            check({name: value for name, value in whole.items() if name != field})


def test_the_page_names_no_address_and_no_name_breaks_out_of_it(tmp_path: Path) -> None:
    page = write_report(told(), tmp_path).read_text()
    assert "<script>alert" not in page
    assert "A &amp; B &lt;i&gt;" in page
    assert "connect-src" not in page
    assert "default-src 'none'" in page
    own = page[: page.index("<script>", page.index('id="document"'))]
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", own)
    assert "This run was interrupted" in page


def test_differences_are_told_with_the_reasons_of_both() -> None:
    found = told()["differences"]
    assert found
    near = next(each for each in found if each["variant"] == "near")
    assert abs(near["share"] - near["recorded_share"]) > 0.0
    assert all(near["because"])
    assert near["recorded_because"] == ["why"]
    of_lp = next(each for each in found if each["variant"] == "lp")
    assert any("ms" in sentence for sentence in of_lp["because"])


def test_tables_and_csv_say_what_the_document_says(tmp_path: Path) -> None:
    write_report(told(), tmp_path)
    written = list(csv.DictReader(io.StringIO((tmp_path / "comparison.csv").read_text())))
    mean = next(r for r in written if r["variant"] == "lp" and r["number"] == "mean_ms")
    lp = next(v for v in told()["variants"] if v["name"] == "lp")
    assert float(mean["value"]) == lp["numbers"]["mean_ms"]["value"]
    series = list(csv.DictReader(io.StringIO((tmp_path / "series.csv").read_text())))
    assert len(series) == sum(len(v["series"]["at_ms"]) for v in told()["variants"])
    heading, _, *rows = table_lines(told())
    assert "+ better, - worse than" in heading
    assert [line.split()[0] for line in rows[2::2]] == ["lp", "near"]
    mean = lp["numbers"]["mean_ms"]
    assert rows[2].split()[1].rstrip("+-") == f"{mean['value']:,.0f}"
    assert rows[3].split()[0] == f"{mean['low']:,.0f}..{mean['high']:,.0f}"


def test_each_kind_of_mean_has_one_word_and_it_is_the_same_in_docs_page_text_and_json(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[3] / "infra" / "docs" / "replay.md").read_text()
    names = json.loads(schema_text())["properties"]["legend"]["items"]["properties"]["name"]["enum"]
    assert names == [kind.name for kind in KINDS]
    for kind in KINDS:
        assert f"| **{kind.name}** | {kind.sentence} |" in docs
    assert list(legend_lines(told())) == []  # of one kind alone nothing has to be told apart
    shown = MeasuredFleet(Shown(1000, 0.2, 0.3), {}, NOTHING_MEASURED.spread, {})
    score = score_variant("recorded", (played(float(s), at(s), {"A": {"e1": 1.0}}) for s in range(20)))
    found = compare("recorded", [score], measured=shown)
    estimate = OffPolicyEstimate(1000, 500.0, 0.0, 190.0, 210.0, 205.0, 3.0)
    found = replace(found, variants=(replace(found.variants[0], off_policy=estimate),))
    whole = document(found, Origin("t", "by hand", closed_loop=False))
    assert [each["name"] for each in whole["legend"]] == ["scored", "estimated", "measured", "scored, engine alone"]
    assert [each["mean_ms"] for each in whole["legend"]][1:3] == [210.0, 200.0]
    page = write_report(whole, tmp_path).read_text()
    for each, line in zip(whole["legend"], list(legend_lines(whole))[1:], strict=True):
        assert line.split("  ")[1] == each["name"]
        assert f"<td>{each['name']}</td>" in page
    (tmp_path / "comparison.json").write_text(json.dumps({k: v for k, v in whole.items() if k != "legend"}))
    assert "Which number is which" not in write_report(read_document(tmp_path), tmp_path / "older").read_text()


def test_a_mean_stands_beside_what_is_unserved_in_every_world(tmp_path: Path) -> None:
    page = write_report(told(), tmp_path).read_text()
    table = page[page.index("<h2>How far to believe it</h2>") : page.index("<h2>Who fared how</h2>")]
    assert table.count("% unserved</small>") == 3 * len(told()["variants"])
    for variant in told()["variants"]:
        found = variant["sensitivity"]
        assert found["faster_unserved_percent"] <= found["slower_unserved_percent"]
    assert any(v["sensitivity"]["slower_unserved_percent"] > 0.0 for v in told()["variants"])


def test_a_share_is_said_to_be_of_all_requests_in_the_heading_of_a_difference(tmp_path: Path) -> None:
    page = write_report(told(), tmp_path).read_text()
    headings = re.findall(r"<div class=why><h3>(.*?)</h3>", page)
    assert headings
    assert all("% of all its requests instead of " in heading for heading in headings)


def test_a_run_too_short_for_intervals_does_not_promise_them(tmp_path: Path) -> None:
    long = write_report(told(), tmp_path / "long").read_text()
    assert "below each value its 95 % interval" in long
    short = compare(
        "a",
        [score_variant(name, (played(float(s), at(s), {"A": {"e1": 1.0}}) for s in range(20))) for name in ("a", "b")],
    )
    page = write_report(document(short, Origin("s", "by hand", closed_loop=False)), tmp_path / "short").read_text()
    assert "below each value its 95 % interval" not in page
    assert "There are no 95 % intervals" in page


def test_the_pictures_open_on_the_variant_that_differs_most_from_the_recorded(tmp_path: Path) -> None:
    def score(name: str, share: float) -> VariantScore:
        ticks = (played(float(s), at(s), {"A": {"e1": share, "e2": 1.0 - share}}) for s in range(20))
        return score_variant(name, ticks)

    shares = {"recorded": 0.5, "same": 0.5, "near": 0.55, "far": 0.9}
    found = compare("recorded", [score(name, share) for name, share in shares.items()])
    page = write_report(document(found, Origin("t", "by hand", closed_loop=False)), tmp_path).read_text()
    assert "<option selected>far</option>" in page
    assert page.count(" selected>") == 1


def test_the_axis_of_a_log_scale_is_labelled_by_whole_numbers_in_words_of_its_own(tmp_path: Path) -> None:
    page = write_report(told(), tmp_path).read_text()
    own = page[page.rindex("<script>") :]
    assert own.count('type: "log"') == own.count('return { type: "log"')
    assert 'tickmode: "array"' in own


def test_a_report_is_drawn_again_from_its_own_json_to_the_same_bytes(tmp_path: Path) -> None:
    first = write_report(told(), tmp_path / "one").read_bytes()
    again = write_report(read_document(tmp_path / "one"), tmp_path / "two").read_bytes()
    assert first == again


def test_what_is_no_comparison_is_refused(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="is not a comparison"):
        read_document(tmp_path)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_document(tmp_path / "nothing.json")


def test_an_empty_range_has_a_report_that_says_so(tmp_path: Path) -> None:
    nothing = document(
        compare("recorded", [score_variant("recorded", ())]), Origin("Empty", "by hand", closed_loop=False)
    )
    assert nothing["verdict"][0].startswith("There is nothing to judge")
    assert write_report(nothing, tmp_path).exists()
