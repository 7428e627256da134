"""What `headrace replay` says to ranges that are not as they should be, typed as a user types them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from headrace.infra.cli import headrace
from headrace.replay.core.history import Span
from headrace.replay.sources.manifest import FILE
from headrace.schemas.codec import encode
from headrace.schemas.errors import HeadraceError
from headrace.schemas.topics import SNAPSHOTS, STATE_DEMAND, STATE_ENGINE
from replay_history import SETTINGS, START_MS, TABLE, Run, recorded_run
from solver_inputs import spec

DIFFERS, NOT_ALL = 3, 4


def run(*arguments: object) -> Result:
    return CliRunner().invoke(headrace, [str(each) for each in arguments])


def refused(*arguments: object) -> str:
    """What a command says that does not do what it was asked for: one message, never a traceback."""
    result = run(*arguments)
    assert result.exit_code != 0, result.output
    if isinstance(result.exception, SystemExit):
        return result.output
    assert isinstance(result.exception, HeadraceError), repr(result.exception)
    return str(result.exception)


def played(folder: Path, out: Path, *more: object) -> dict[str, Any]:
    result = run("replay", "run", "--dir", folder, "--policy", "recorded", "--out", out, "--processes", 1, *more)
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = orjson.loads((out / "comparison.json").read_bytes())
    return found


def verified(folder: Path, status: int) -> dict[str, Any]:
    result = run("replay", "verify", "--dir", folder, "--json", "--processes", 1)
    assert result.exit_code == status, result.output + repr(result.exception)
    # The progress bar is on standard error.
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def without(damaged: Run, role: str, gone: Callable[[int], bool]) -> Run:
    for place in damaged.logs:
        if place[0] == TABLE[role].name:
            damaged.logs[place] = [record for n, record in enumerate(damaged.logs[place]) if not gone(n)]
    return damaged


def test_lost_segments_of_the_inputs_are_told_and_their_ticks_not_called_the_same(tmp_path: Path) -> None:
    lost = without(recorded_run(), STATE_DEMAND, lambda n: 3 <= n < 6).write(tmp_path / "lost")
    told = verified(lost, DIFFERS)
    assert told["identical"] != told["ticks"]
    first = told["differences"][0]["input"]
    assert TABLE[STATE_DEMAND].name in first
    assert any(each["found"] == "COMPACTED" for each in told["findings"])
    assert any("missing" in note for note in played(lost, tmp_path / "out")["notes"])


def test_lost_snapshots_are_told_and_what_is_whole_is_verified(tmp_path: Path) -> None:
    lost = without(recorded_run(), SNAPSHOTS, lambda n: 8 <= n < 12).write(tmp_path / "lost")
    told = run("replay", "verify", "--dir", lost, "--processes", 1)
    assert told.exit_code in (0, DIFFERS, NOT_ALL)
    assert "GAP" in told.output
    assert "NO_KEYFRAME" in told.output


def test_records_of_a_schema_that_nobody_knows_are_told_and_the_rest_stands(tmp_path: Path) -> None:
    changed = recorded_run()
    place = next(each for each in changed.logs if each[0] == TABLE[STATE_ENGINE].name)
    log = changed.logs[place]
    strange = b"\xc3\x01" + bytes(8) + b"whatever"
    log[4] = replace(log[4], value=strange)
    told = verified(changed.write(tmp_path / "changed"), DIFFERS)
    unreadable = [each for each in told["findings"] if each["found"] == "UNREADABLE"]
    assert "UNKNOWN_SCHEMA" in unreadable[0]["sentence"]


def test_snapshots_of_a_schema_that_nobody_knows_are_told_and_not_taken_for_an_empty_range(tmp_path: Path) -> None:
    changed = recorded_run()
    for place, log in changed.logs.items():
        if place[0] == TABLE[SNAPSHOTS].name:
            changed.logs[place] = [replace(each, value=b"\xc3\x01" + bytes(8) + b"whatever") for each in log]
    folder = changed.write(tmp_path / "changed")
    told = verified(folder, NOT_ALL)
    (found,) = (each for each in told["findings"] if each["found"] == "UNREADABLE")
    assert "UNKNOWN_SCHEMA" in found["sentence"]
    asked = ("replay", "run", "--dir", folder, "--policy", "lp", "--out", tmp_path / "o", "--processes", 1)
    assert "UNKNOWN_SCHEMA" in refused(*asked)


def test_confluent_framing_without_a_registry_says_what_is_missing(tmp_path: Path) -> None:
    framed = recorded_run()
    place = next(each for each in framed.logs if each[0] == TABLE[STATE_ENGINE].name)
    log = framed.logs[place]
    log[4] = replace(log[4], value=b"\x00" + (7).to_bytes(4, "big") + (log[4].value or b"")[10:])
    told = verified(framed.write(tmp_path / "framed"), DIFFERS)
    sentences = [each["sentence"] for each in told["findings"]]
    assert any("no registry is configured" in sentence for sentence in sentences)


def test_a_clock_that_steps_back_is_told_and_changes_nothing(tmp_path: Path) -> None:
    stepped = recorded_run()
    for place, log in stepped.logs.items():
        if place[0] == TABLE[STATE_ENGINE].name:
            log[5] = replace(log[5], timestamp_ms=log[5].timestamp_ms - 30_000)
    folder = stepped.write(tmp_path / "stepped")
    told = verified(folder, 0)
    assert {each["found"] for each in told["findings"]} == {"CLOCK_STEPPED_BACK"}
    whole = played(recorded_run().write(tmp_path / "whole"), tmp_path / "one")
    assert played(folder, tmp_path / "other")["variants"] == whole["variants"]


def test_what_comes_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    twice = recorded_run()
    for place, log in twice.logs.items():
        twice.logs[place] = [*log, *log]
    folder = twice.write(tmp_path / "twice")
    told = verified(folder, 0)
    assert {each["found"] for each in told["findings"]} == {"DUPLICATES"}
    whole = played(recorded_run().write(tmp_path / "whole"), tmp_path / "one")
    assert played(folder, tmp_path / "other")["variants"] == whole["variants"]


def test_an_empty_range_is_refused_by_each_command(tmp_path: Path) -> None:
    empty = Run()
    empty.declare()
    folder = empty.write(tmp_path / "empty", span=Span(START_MS, START_MS + 60_000))
    wanted = ("replay", "run", "--dir", folder, "--policy", "lp", "--out", tmp_path / "o")
    assert "the range holds no signals" in refused(*wanted)
    told = run("replay", "verify", "--dir", folder, "--processes", 1)
    assert told.exit_code == NOT_ALL
    assert "0 of 0 snapshots" in told.output
    shadow = ("replay", "compare", "--live-vs-shadow", "--dir", folder, "--out", tmp_path / "p")
    assert "no shadow was recorded in this range" in refused(*shadow)


@pytest.mark.parametrize(
    "command", [("verify",), ("run", "--policy", "lp", "--out", "o"), ("compare", "--live-vs-shadow", "--out", "o")]
)
def test_a_folder_that_holds_no_history_is_refused_with_how_to_make_one(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "holds no history" in refused("replay", *command, "--dir", tmp_path)
    assert "give either --dir DIR" in refused("replay", *command)
    assert "give either --dir DIR" in refused("replay", *command, "--dir", tmp_path, "--from", "1h")
    assert "--from is 'yesterday'" in refused("replay", *command, "--from", "yesterday")
    assert "not after its beginning" in refused("replay", *command, "--from", "1h", "--to", "2h")


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    for text in (b"{", b"[]", b'{"format": "other"}', b'{"format": "headrace.history/1"}'):
        (folder / FILE).write_bytes(text)
        assert FILE in refused("replay", "verify", "--dir", folder)


def test_an_unknown_policy_is_told_with_those_there_are(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    out = ("--dir", folder, "--out", tmp_path / "out")
    told = refused("replay", "run", *out, "--policy", "proportionl:k=0.1", "--policy", "lp:no_such=1")
    assert "proportional" in told
    assert "no_such" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("lq", "'lp'"),
        ("proportionl", "'proportional'"),
        ("proportional:kk=0.1", "'k'"),
        ("pid:integrl=0.1", "'integral'"),
        ("lp:move_price=1", "'move_price_ms'"),
    ],
)
def test_what_is_mistyped_is_told_with_what_is_nearest(tmp_path: Path, given: str, meant: str) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    told = refused("replay", "run", "--dir", folder, "--out", tmp_path / "out", "--policy", given)
    assert f"did you mean {meant}?" in told


def test_a_range_that_ends_before_it_begins_is_told_in_instants() -> None:
    with pytest.raises(
        HeadraceError, match="ends at 2023-11-14T22:13:20Z, not after its beginning 2023-11-14T22:13:21"
    ):
        Span(START_MS + 1_500, START_MS)


def test_what_is_set_for_all_is_of_the_recorded_policy_too_beside_what_was_recorded(tmp_path: Path) -> None:
    folder = recorded_run(4).write(tmp_path / "history")
    assert [each["name"] for each in played(folder, tmp_path / "plain")["variants"]] == ["recorded"]
    dearer = ("--policy", "x=recorded:move_price_ms=300", "--set", "solver.move_price_ms=300")
    recorded, given, named = played(folder, tmp_path / "dearer", *dearer)["variants"]
    assert [each["name"] for each in (recorded, given, named)] == ["recorded", "recorded-set", "x"]
    prices = [each["configuration"]["move_price_ms"] for each in (recorded, given, named)]
    assert prices == [SETTINGS.move_price_ms, 300.0, 300.0]
    digests = [
        orjson.loads((tmp_path / "dearer" / name / "result.json").read_bytes()) for name in ("recorded-set", "x")
    ]
    assert digests[0]["digest"] == digests[1]["digest"]


def test_run_and_report_print_the_table_and_the_verdict_not_a_path_alone(tmp_path: Path) -> None:
    folder = recorded_run().write(tmp_path / "history")
    asked = ("replay", "run", "--dir", folder, "--policy", "nearest", "--out", tmp_path / "out", "--processes", 1)
    told = run(*asked).stdout.splitlines()
    found = orjson.loads((tmp_path / "out" / "comparison.json").read_bytes())
    assert told[0] == "recorded: 12 ticks, 12 with the recorded weights"
    table = told.index(next(line for line in told if line.startswith("variant ")))
    assert "moved %/min" in told[table]
    for line, variant in zip(told[table + 1 :], found["variants"], strict=False):
        mean, p99 = (variant["numbers"][name]["value"] for name in ("mean_ms", "p99_ms"))
        assert line.split()[:2] == [variant["name"], f"{mean:,.0f}"]
        assert f"{p99:,.0f}" in line
    assert all(sentence in told for sentence in found["verdict"])
    assert told[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    assert run("replay", "report", tmp_path / "out").stdout.splitlines() == told[told.index("") + 1 :]


def test_no_other_policy_is_called_as_the_recorded_run_is(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    told = refused("replay", "run", "--dir", folder, "--out", tmp_path / "out", "--policy", "recorded=nearest")
    assert "recorded=nearest is called 'recorded', as the recorded run is" in told


def test_a_result_is_not_written_over(tmp_path: Path) -> None:
    folder = recorded_run(3).write(tmp_path / "history")
    played(folder, tmp_path / "out")
    again = ("replay", "run", "--dir", folder, "--policy", "recorded", "--out", tmp_path / "out", "--processes", 1)
    assert "is not empty; a folder that is empty or new, or --force" in refused(*again)
    assert run(*again, "--force").exit_code == 0


def test_a_mapping_that_cannot_be_used_is_told_before_anything_is_played(tmp_path: Path) -> None:
    folder = recorded_run(2).write(tmp_path / "history")
    good = tmp_path / "good.yaml"
    good.write_text("preset: vllm_v1\n")
    place = ("replay", "run", "--dir", folder, "--policy", "lp", "--out", tmp_path / "out")
    assert "without a topic; the history holds none" in refused(*place, "--mapping", good)
    told = refused(*place, "--mapping", f"team={tmp_path / 'none.yaml'}", "--mapping", f"other={good}")
    assert "cannot be read" in told
    assert "carrier is missing" in told
    assert not (tmp_path / "out").exists()


def test_a_changed_record_of_the_fleet_is_found_and_named(tmp_path: Path) -> None:
    changed = recorded_run()
    for place, log in changed.logs.items():
        changed.logs[place] = [
            replace(record, value=encode(spec("engine-b", site="b", capacity_rps_per_replica=61.0)))
            if record.key == b"engine-b" and place[0].endswith("fleet")
            else record
            for record in log
        ]
    told = verified(changed.write(tmp_path / "changed"), DIFFERS)
    assert "engine-b" in told["differences"][0]["input"]
