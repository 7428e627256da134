"""Recorded snapshots are computed again to the byte, and what is not as it was is found and named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from headrace.replay.core.history import Found, HistoryError, Span
from headrace.replay.runs.verification import Verification, verify_folder
from headrace.replay.runs.verification_text import as_json, as_junit, as_lines
from headrace.replay.sources.container import read_container
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.raw import RawRecord
from headrace.schemas.state import EngineState
from headrace.schemas.topics import DECISIONS, SIGNALS_ENGINE, SNAPSHOTS, STATE_ENGINE
from headrace.solver.core import tick as tick_module
from headrace.solver.core.tick import policy_hash
from replay_history import SETTINGS, START_MS, TABLE, Run, recorded_run
from solver_inputs import spec

ENGINES = TABLE[STATE_ENGINE].name


def verified(folder: Path, processes: int = 1) -> Verification:
    return verify_folder(folder, processes, lambda _: None, lambda: False)


def of_engine(run: Run, engine_id: str) -> list[tuple[tuple[str, int], int]]:
    """Where an engine's state records lie."""
    return [
        (place, number)
        for place, log in run.logs.items()
        for number, record in enumerate(log)
        if place[0] == ENGINES and record.key == engine_id.encode()
    ]


def edit(run: Run, engine_id: str, nth: int, change: Callable[[EngineState], EngineState]) -> RawRecord:
    """Change the nth state record of an engine, as somebody would who edits an exported file."""
    place, number = of_engine(run, engine_id)[nth]
    record = run.logs[place][number]
    state = must(decode(EngineState, record.value))
    run.logs[place][number] = replace(record, value=encode(change(state)))
    return run.logs[place][number]


def test_every_snapshot_of_a_run_comes_out_the_same_across_a_change_of_writer(tmp_path: Path) -> None:
    result = verified(recorded_run(12).write(tmp_path / "h"))
    assert (result.ticks, result.identical, result.proved) == (12, 12, 12)
    assert result.holds
    assert result.findings == ()


def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    run = recorded_run(9)
    edit(run, "engine-b", 4, lambda state: replace(state, replicas_ready=0))
    folder = run.write(tmp_path / "h")
    alone, beside = verified(folder), verified(folder, 3)
    assert as_json(alone) == as_json(beside)
    assert not alone.holds


def test_a_changed_input_is_named_by_its_record_with_the_term_and_the_weight_that_it_moved(tmp_path: Path) -> None:
    run = recorded_run(8)
    record = edit(run, "engine-b", 3, lambda state: replace(state, replicas_ready=0))
    result = verified(run.write(tmp_path / "h"))
    (first,) = result.differences
    where = f"{ENGINES}[{record.partition}]"
    assert first.version == 4
    assert first.input.startswith(f"{where}: offsets ")
    assert "engine-b" in first.input
    assert " ppm, gets " in first.weight
    assert first.term
    assert (result.identical, result.differing) == (7, 1)


def test_a_changed_input_that_changes_no_weight_is_named_all_the_same(tmp_path: Path) -> None:
    run = recorded_run(6)
    edit(run, "engine-a", 2, lambda state: replace(state, kv_usage=0.25))
    result = verified(run.write(tmp_path / "h"))
    (found,) = result.differences
    assert (found.same_bytes, found.version, found.term, found.weight) == (True, 3, "", "")
    assert not result.holds


def test_a_lost_record_is_named_where_its_partition_no_longer_proves(tmp_path: Path) -> None:
    run = recorded_run(6)
    place, number = of_engine(run, "engine-c")[3]
    del run.logs[place][number]
    result = verified(run.write(tmp_path / "h"))
    assert result.differences[0].version == 4
    assert f"{place[0]}[{place[1]}]" in result.differences[0].input


def test_a_tick_whose_writer_had_read_less_than_the_one_before_is_verified_too(tmp_path: Path) -> None:
    run = recorded_run(3)
    behind = dict(run.read)
    run.beat(90.0)
    run.tick()
    # The next writer had not seen the last beat when it took the pen.
    run.new_writer()
    run.read_anew(behind)
    run.tick(behind)
    run.tick()
    result = verified(run.write(tmp_path / "h"))
    assert (result.ticks, result.identical, result.proved) == (6, 6, 6)


def test_a_range_that_begins_after_the_last_keyframe_is_not_verified_in_part_but_says_why(tmp_path: Path) -> None:
    run = recorded_run(8)
    snapshots, decisions = (TABLE[SNAPSHOTS].name, 0), (TABLE[DECISIONS].name, 0)
    # The log begins in the middle of an epoch: keyframes are at versions 1, 5 (a new writer) and so on.
    first = next(n for n, record in enumerate(run.logs[snapshots]) if record.key == b"!commit") + 1
    run.logs[snapshots] = run.logs[snapshots][first:]
    run.logs[decisions] = run.logs[decisions][1:]
    result = verified(run.write(tmp_path / "h"))
    assert 0 < result.identical < 7
    assert [finding.found for finding in result.findings] == [Found.NO_KEYFRAME]


def test_settings_that_this_build_does_not_know_are_a_reason_and_no_difference(tmp_path: Path) -> None:
    run = recorded_run(3)
    place = TABLE[DECISIONS].name, 0
    for number, record in enumerate(run.logs[place]):
        decided = must(decode(SolveRecord, record.value))
        if decided.settings is not None:
            text = decided.settings.replace('"policy":"lp"', '"policy":"oracle"')
            run.logs[place][number] = replace(record, value=encode(replace(decided, settings=text)))
    result = verified(run.write(tmp_path / "h"))
    assert (result.ticks, result.unverifiable) == (3, 3)
    assert "policy is 'oracle'" in result.reasons[0].reason


def test_records_of_a_schema_nobody_knows_are_told_and_those_before_them_stand(tmp_path: Path) -> None:
    run = recorded_run(4)
    place, number = of_engine(run, "engine-b")[2]
    record = run.logs[place][number]
    value = (record.value or b"")[:2] + bytes(8) + (record.value or b"")[10:]
    run.logs[place][number] = replace(record, value=value)
    result = verified(run.write(tmp_path / "h"))
    unreadable = [finding for finding in result.findings if finding.found is Found.UNREADABLE]
    assert "no schema has the fingerprint 0000000000000000" in unreadable[0].sentence
    assert "engine-b" in result.differences[0].input


def test_a_range_without_a_snapshot_holds_nothing(tmp_path: Path) -> None:
    run = recorded_run(3)
    result = verified(run.write(tmp_path / "h", span=Span(START_MS - 9_000, START_MS - 1_000), ticks=0))
    assert result.ticks == 0
    assert not result.holds


def test_a_damaged_file_a_missing_one_and_a_folder_that_is_none_are_refused_by_name(tmp_path: Path) -> None:
    folder = recorded_run(4).write(tmp_path / "h")
    file = folder / STATE_ENGINE / "0.avro"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HistoryError, match=r"0\.avro is cut short: 0 of its 4 records are whole; export again"):
        verified(folder)
    file.write_bytes(whole[:-40] + bytes(40))
    with pytest.raises(HistoryError, match=r"0\.avro is damaged after 0 of 4 records"):
        verified(folder)
    file.unlink()
    with pytest.raises(HistoryError, match=r"0\.avro cannot be read: No such file"):
        verified(folder)
    with pytest.raises(HistoryError, match="headrace export --out"):
        verified(tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 300, -1000, -20, -3])
def test_a_file_that_nobody_reads_is_seen_to_be_cut_short_too(tmp_path: Path, kept: int) -> None:
    """Signals are in the folder for `--from-signals`; a copy that broke off there is no good copy."""
    run = recorded_run(4)
    signals = TABLE[SIGNALS_ENGINE].name
    for n in range(200):
        run.append((signals, 0), b"engine-a", n.to_bytes(8) * 20)
    folder = run.write(tmp_path / "h")
    assert verified(folder).holds
    for role, count in ((SIGNALS_ENGINE, 200), (STATE_ENGINE, 4)):
        file = folder / role / "0.avro"
        whole = file.read_bytes()
        file.write_bytes(whole[:kept])
        if len(whole[:kept]) < len(whole):
            with pytest.raises(HistoryError, match=rf"0\.avro is cut short: 0 of its {count} records are whole"):
                verified(folder)
        with pytest.raises(HistoryError, match=r"0\.avro is cut short .*: export again"):
            list(read_container(file, (signals, 0)))
        file.write_bytes(whole)


def test_all_files_that_are_cut_short_are_named_at_once(tmp_path: Path) -> None:
    folder = recorded_run(4).write(tmp_path / "h")
    for name in ("state.engine/1.avro", "fleet/0.avro"):
        (folder / name).write_bytes(b"")
    (folder / "profiles" / "0.avro").unlink()
    with pytest.raises(HistoryError) as told:
        verified(folder)
    assert str(told.value).count("is cut short") == 2
    assert "profiles/0.avro cannot be read" in str(told.value)


def test_where_the_inputs_are_proved_a_difference_is_the_codes(tmp_path: Path) -> None:
    run = recorded_run(3)
    place = TABLE[DECISIONS].name, 0
    record = run.logs[place][1]
    decided = must(decode(SolveRecord, record.value))
    run.logs[place][1] = replace(record, value=encode(replace(decided, objective=1.0)))
    (difference,) = verified(run.write(tmp_path / "h")).differences
    assert difference.input.startswith("the inputs are proved to be what the solver read")
    assert "decision record: objective was 1.0" in difference.input


def test_junit_has_a_case_a_minute_that_fails_by_what_differs(tmp_path: Path) -> None:
    run = recorded_run(4)
    edit(run, "engine-b", 1, lambda state: replace(state, replicas_ready=0))
    result = verified(run.write(tmp_path / "h"))
    (case,) = ET.fromstring(as_junit(result))  # noqa: S314 - our own bytes
    (failure,) = case
    assert failure.attrib["message"] == "1 of 4 snapshots are not identical"
    assert "engine-b" in (failure.text or "")
    assert next(as_lines(result)).startswith("3 of 4 snapshots are identical, ")


def test_an_engine_that_is_declared_in_mid_run_counts_from_the_tick_that_saw_it(tmp_path: Path) -> None:
    run = recorded_run(3)
    run.put(spec("engine-d", site="a", capacity_rps_per_replica=60.0))
    run.tick()
    run.beat()
    run.tick()
    assert verified(run.write(tmp_path / "h")).holds


def test_a_recording_of_another_build_is_told_with_both_hashes_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = recorded_run(4).write(tmp_path / "h")
    recorded = policy_hash(SETTINGS)
    # Another build has another list of rules: the same settings come to another hash, in every tick.
    monkeypatch.setattr(tick_module, "_RULES", ("policy",))
    result = verified(folder)
    assert (result.identical, result.differing) == (0, 4)
    first = as_json(result)["differences"][0]
    assert (first["policy_hash"], first["policy_hash_now"]) == (recorded, policy_hash(SETTINGS))
    for said in ("\n".join(as_lines(result)), as_junit(result).decode()):
        assert f"policy_hash was {recorded}, is {policy_hash(SETTINGS)}: this build has other rules" in said
        assert "verify it with the build and on the machine that recorded it" in said
        assert "headrace replay run --policy recorded" in said


def test_a_change_of_the_code_alone_is_told_as_the_same_rules_computed_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = recorded_run(3).write(tmp_path / "h")
    monkeypatch.setattr(tick_module, "_said", in_other_words)
    said = "\n".join(as_lines(verified(folder)))
    assert f"policy_hash was {policy_hash(SETTINGS)} and still is: the same rules, computed otherwise" in said
    assert "verify it with the build" in said


def test_a_changed_input_is_not_put_down_to_the_build(tmp_path: Path) -> None:
    run = recorded_run(8)
    edit(run, "engine-b", 3, lambda state: replace(state, replicas_ready=0))
    assert "policy_hash" not in "\n".join(as_lines(verified(run.write(tmp_path / "h"))))


def test_a_setting_that_has_gone_is_told_with_the_hash_it_was_recorded_under(tmp_path: Path) -> None:
    run = recorded_run(3)
    for place, log in run.logs.items():
        if place[0] == TABLE[DECISIONS].name:
            run.logs[place] = [without_a_setting(record) for record in log]
    result = verified(run.write(tmp_path / "h"))
    assert result.unverifiable == 3
    said = "\n".join(as_lines(result))
    assert "old_price_ms is no setting of this build" in said
    assert f"recorded under policy_hash {policy_hash(SETTINGS)}: verify it with the build that did" in said


def in_other_words(*_: object) -> str:
    return "in other words"


def without_a_setting(record: RawRecord) -> RawRecord:
    """Give a decision as an older build wrote it, with a setting that this one does not know."""
    decided = must(decode(SolveRecord, record.value))
    if decided.settings is None:
        return record
    return replace(record, value=encode(replace(decided, settings=decided.settings[:-1] + ',"old_price_ms":1}')))
