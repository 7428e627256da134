"""`headrace replay compare --live-vs-shadow`: the shadow told by its own settings, over the time that both ticked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from headrace.infra.cli import headrace
from headrace.replay.core.history import HistoryError
from headrace.replay.core.recorded import DECISION_KEY
from headrace.schemas.codec import decode, encode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.topics import DECISIONS, SHADOW, SNAPSHOTS
from replay_history import PERIOD_MS, SETTINGS, TABLE, Run

TICKS = 12
GENTLE = replace(SETTINGS, policy="proportional", proportional_gain=0.2)
NO_PRICES = "What others would cost is not known: it was decided without prices."


def history(folder: Path, shadow: range, live: range = range(TICKS), *, settings: bool = True) -> Path:
    """Write a run of the LP with a gentle shadow beside it, each of which ticks at these numbers alone."""
    run, beside = Run(), Run(settings=GENTLE)
    for each in (run, beside):
        each.declare()
    for number in range(TICKS):
        for each, ticking in ((run, live), (beside, shadow)):
            each.beat(60.0 + 4 * (number % 5))
            known = len(each.logs.get((TABLE[SNAPSHOTS].name, 0), []))
            if number not in ticking:
                each.now_ms += PERIOD_MS
                continue
            each.tick()
            if each is beside:
                _log(run, beside, known, settings=settings)
    return run.write(folder)


def _log(run: Run, beside: Run, known: int, *, settings: bool) -> None:
    """Put what a shadow has just decided into its topic, as its writer does."""
    record = decode(SolveRecord, beside.logs[TABLE[DECISIONS].name, 0][-1].value, ())
    assert not isinstance(record, Rejected)
    place = TABLE[SHADOW].name, 0
    run.append(place, DECISION_KEY, encode(record if settings else replace(record, settings=None)))
    for each in beside.logs[TABLE[SNAPSHOTS].name, 0][known:]:
        run.append(place, each.key, each.value)


def compare(folder: Path, out: Path) -> Result:
    asked = ("replay", "compare", "--live-vs-shadow", "--dir", str(folder), "--out", str(out), "--processes", "1")
    return CliRunner().invoke(headrace, asked)


def compared(folder: Path, out: Path) -> dict[str, Any]:
    result = compare(folder, out)
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = orjson.loads((out / "comparison.json").read_bytes())
    assert all(note in result.stderr for note in found["notes"])
    return found


def test_a_shadow_is_told_and_explained_by_its_own_settings_not_by_the_live_ones(tmp_path: Path) -> None:
    found = compared(history(tmp_path / "h", range(TICKS)), tmp_path / "out")
    live, shadow = (variant["configuration"] for variant in found["variants"])
    assert (live["policy"], live["proportional_gain"]) == ("lp", SETTINGS.proportional_gain)
    assert (shadow["policy"], shadow["proportional_gain"]) == ("proportional", 0.2)
    assert found["differences"]
    for each in found["differences"]:
        assert NO_PRICES not in each["recorded_because"]
        if each["share"] > 0.0:
            assert f"sends {each['engine_id']} {100 * each['share']:.1f} %" in each["because"][0]
            assert NO_PRICES in each["because"]
    assert found["notes"] == []


def test_a_shadow_without_recorded_settings_is_not_explained_by_guessed_ones(tmp_path: Path) -> None:
    found = compared(history(tmp_path / "h", range(TICKS), settings=False), tmp_path / "out")
    assert [variant["policy"] for variant in found["variants"]] == ["lp", "proportional"]
    assert found["variants"][1]["configuration"] == {}
    assert any("history does not hold the shadow's settings" in note for note in found["notes"])
    assert all(len(each["because"]) == 1 for each in found["differences"])


@pytest.mark.parametrize(
    ("live", "shadow", "ticks", "left"),
    [
        (range(TICKS), range(4, TICKS), 8, "4 of 12 live ticks and 0 of 8 of the shadow's"),
        (range(TICKS), range(9), 9, "3 of 12 live ticks and 0 of 9 of the shadow's"),
        (range(2, TICKS), range(10), 8, "2 of 10 live ticks and 2 of 10 of the shadow's"),
    ],
)
def test_live_and_shadow_are_compared_over_the_time_that_both_ticked_and_what_is_left_out_is_told(
    live: range, shadow: range, ticks: int, left: str, tmp_path: Path
) -> None:
    found = compared(history(tmp_path / "h", shadow, live), tmp_path / "out")
    assert [(each["ticks"], each["seconds"]) for each in found["variants"]] == [(ticks, float(ticks))] * 2
    assert [left in note for note in found["notes"]] == [True]


def test_live_and_shadow_that_never_ticked_together_are_refused(tmp_path: Path) -> None:
    result = compare(history(tmp_path / "h", range(6, TICKS), range(5)), tmp_path / "out")
    assert isinstance(result.exception, HistoryError)
    assert "live and shadow have no time in common" in str(result.exception)
