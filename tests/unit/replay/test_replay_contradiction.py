"""Where profiles and single decisions say opposite things, the report says so, why, and which to believe of what."""

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.replay.report.document import Origin, document
from headrace.replay.report.text_table import verdict_lines
from headrace.replay.report.write import read_document, write_report
from headrace.replay.score.calibration import Agreement
from headrace.replay.score.cautions import cautions
from headrace.replay.score.comparison import Comparison, compare
from headrace.replay.score.contradiction import by_decisions, load_apart
from headrace.replay.score.length_spread import equal_lengths
from headrace.replay.score.measured import NOTHING_MEASURED
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.variant import score_variant
from headrace.replay.score.variant_score import VariantScore
from played_ticks import played
from solver_problems import engine, problem, profile, row

RULES = ScoreSettings(cold_share=0.0, chance=0.0)
ALIKE = replace(NOTHING_MEASURED, spread=equal_lengths())
LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))


def swinging(name: str, share: float) -> VariantScore:
    """Demand of 4 and 12 RPS by turns, on two engines of 10; e1 gets a share, e2 the rest."""

    def at(second: int) -> object:
        p = problem([row("A", 4.0 if second % 40 < 20 else 12.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))
        return played(float(second), p, {"A": {"e1": share, "e2": 1.0 - share}})

    return score_variant(name, (at(s) for s in range(200)), RULES, ALIKE)  # type: ignore[misc]


def estimated(snips_ms: float, error_ms: float) -> OffPolicyEstimate:
    return OffPolicyEstimate(1000, 800.0, 0.01, snips_ms, snips_ms, snips_ms, error_ms)


def compared(share: float, *, more_ms: float, error_ms: float = 2.0) -> Comparison:
    """A variant that is faster by the profiles, with estimates from single decisions beside it."""
    found = compare("recorded", [swinging("recorded", 0.8), swinging("even", share)], RULES)
    recorded, even = found.variants
    beside = (estimated(200.0, error_ms), estimated(200.0 + more_ms, error_ms))
    told = tuple(replace(each, off_policy=by) for each, by in zip((recorded, even), beside, strict=True))
    return replace(found, variants=told)


def test_opposite_signs_beyond_both_intervals_are_said_with_reason_sample_overlap_and_what_to_believe() -> None:
    (said,) = cautions(compared(0.5, more_ms=20.0), closed_loop=False)
    assert said.startswith("even against recorded: -")
    assert "but +20 ms by single decisions (+14 to +26; 800 effective of 1,000 choices, 1.0% of its traffic" in said
    assert "answered under the load that recorded made" in said
    assert "Believe the profiles of moving all traffic, the decisions of a few requests sent that way" in said


@pytest.mark.parametrize(("more_ms", "error_ms"), [(-20.0, 2.0), (20.0, 10.0), (0.0, 2.0)])
def test_the_same_sign_or_one_within_its_interval_is_no_contradiction(more_ms: float, error_ms: float) -> None:
    found = compared(0.5, more_ms=more_ms, error_ms=error_ms)
    assert cautions(found, closed_loop=False) == ()
    told = by_decisions(found.variants[1], found)
    assert told is not None
    assert told.difference_ms == pytest.approx(more_ms)


def test_a_variant_that_hardly_changes_the_load_is_believed_by_its_decisions() -> None:
    found = compared(0.77, more_ms=20.0)
    apart = load_apart(found.variants[1].score, found.variants[0].score)
    # 3 % of 8 RPS, in the mean, on engines of 10.
    assert apart == pytest.approx(0.024, abs=0.002)
    (said,) = cautions(found, closed_loop=False)
    assert "believe them, and fit the profiles anew" in said


def test_profiles_that_do_not_agree_with_the_fleet_are_not_praised() -> None:
    found = compared(0.5, more_ms=20.0)
    assert "try a small share first" in cautions(found, closed_loop=False)[0]
    agreeing = replace(found, calibration=replace(found.calibration, agreement=Agreement.AGREES))
    assert "try a small share first" not in cautions(agreeing, closed_loop=False)[0]


def test_page_and_text_and_json_say_it_beside_the_verdict_and_an_older_document_is_drawn_still(tmp_path: Path) -> None:
    whole = document(compared(0.5, more_ms=20.0), Origin("t", "by hand", closed_loop=False))
    assert list(verdict_lines(whole))[3:] == whole["cautions"]
    assert whole["variants"][1]["off_policy"]["contradicts"]
    page = write_report(whole, tmp_path).read_text()
    assert page.index("even against recorded: -") < page.index("<h2>Variants</h2>")
    assert "contradicts the profiles" in page
    older = {name: value for name, value in read_document(tmp_path).items() if name != "cautions"}
    older["variants"][1]["off_policy"] = {
        name: value
        for name, value in older["variants"][1]["off_policy"].items()
        if not name.startswith("difference") and name != "contradicts"
    }
    assert "Before you believe it" not in write_report(older, tmp_path).read_text()
