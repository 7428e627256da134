"""A simulation is judged by what its users met: the verdict, the table and the page; the score stands beside it."""

from dataclasses import replace
from pathlib import Path

from headrace.replay.report.document import Origin, document
from headrace.replay.report.text_table import table_lines
from headrace.replay.report.write import write_report
from headrace.replay.score.comparison import Comparison, Word, compare
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.users_met import UsersMet, UsersMetFold
from headrace.replay.score.variant import score_variant
from headrace.replay.score.variant_score import VariantScore
from headrace.replay.score.verdict import best_of, verdict
from played_ticks import START_MS, played
from solver_problems import engine, problem, profile, row

RULES = ScoreSettings(cold_share=0.0, chance=0.0)
LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
WORLD = problem([row("A", 9.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))


def users(latency_s: float, seconds: int, *, shed: int = 0, failed: int = 0) -> UsersMet:
    """Ten users a second, who wait by turns a little less and more; of the first `shed` seconds one is shed."""
    fold = UsersMetFold(START_MS, RULES)
    for second in range(seconds):
        for number in range(10):
            fold.answer(START_MS + 1000 * second + number, latency_s * (0.9 + 0.2 * (second % 7) / 6))
        if second < shed:
            fold.shed(START_MS + 1000 * second)
        if second < failed:
            fold.fail(START_MS + 1000 * second)
    return fold.finish()


def score(name: str, share: float, seconds: int, met: UsersMet) -> VariantScore:
    ticks = (played(float(s), WORLD, {"A": {"e1": share, "e2": 1.0 - share}}) for s in range(seconds))
    return replace(score_variant(name, ticks, RULES), met=met)


def compared(seconds: int = 200) -> Comparison:
    """By the profiles the even one is better, and by what its users met the uneven one."""
    even = score("even", 0.5, seconds, users(2.0, seconds, shed=10, failed=20))
    uneven = score("uneven", 0.9, seconds, users(1.0, seconds))
    return compare("even", [even, uneven], RULES)


def test_the_verdict_tells_what_users_met_and_not_what_profiles_score() -> None:
    found = compared()
    even, uneven = found.variants
    assert (even.told("mean_ms").value or 0.0) < (uneven.told("mean_ms").value or 0.0)
    assert best_of(found) is uneven
    first, price, trust = verdict(found)
    assert first.startswith("uneven was best: ")
    assert "ms for its simulated users against " in first
    assert "with 0.00 % shed and 0.00 % failed against 0.49 % and 0.99 %" in first
    p99 = [each.told("met_p99_ms").value or 0.0 for each in (uneven, even)]
    assert price.endswith(f"its p99 is {p99[0]:,.0f} ms against {p99[1]:,.0f} ms.")
    assert trust.startswith("The profiles alone would have scored even ")
    assert "recorded" not in f"{first} {price} {trust}"


def test_what_users_met_has_intervals_of_its_own() -> None:
    told = compared().variants[1].told("met_mean_ms")
    assert told.word is Word.BETTER
    assert told.difference_interval is not None
    assert told.difference_interval.high < -900.0
    failed = compared().variants[0].told("met_failed_percent")
    assert failed.interval is not None
    assert failed.interval.low <= (failed.value or 0.0) <= failed.interval.high


def test_of_history_nothing_is_told_as_met() -> None:
    plain = [replace(each.score, met=None) for each in compared().variants]
    found = compare("even", plain, RULES)
    assert not found.met
    assert not any(told.number.met for told in found.variants[0].numbers)
    assert best_of(found).score.name == "even"


def test_table_and_page_lead_with_what_users_met_and_speak_of_no_recorded_policy(tmp_path: Path) -> None:
    whole = document(compared(), Origin("t", "by hand", closed_loop=True))
    heading, columns, *_ = table_lines(whole)
    assert heading.startswith("latencies, failed and shed as simulated users met them; below each number its 95 %")
    assert columns.split()[7:11] == ["failed", "%", "shed", "%"]
    page = write_report(whole, tmp_path).read_text()
    assert page.index("<th>met, mean") < page.index("<th>end to end, mean")
    seen = page[: page.index('<script type="application/json"')]
    assert "Beside even" in seen
    assert "ecorded" not in seen
