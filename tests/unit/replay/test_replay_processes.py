"""One variant's signals folded in processes beside the one that decides: the same bytes, and a clear end of each."""

import multiprocessing
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from headrace.replay.core.history import DamagedError, Finding, HistoryError, Span
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.variant import parse_variants
from headrace.replay.runs import fold_processes
from headrace.replay.runs.signals import signals_played
from headrace.replay.runs.variants import Job, run_variants
from headrace.replay.score.measured import NOTHING_MEASURED
from headrace.schemas.codec import encode
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK
from headrace.solver.settings import SolverSettings
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from replay_history import START_MS, TABLE, Run
from replay_signals import signals
from solver_inputs import spec

STREAMS = StreamsSettings()
BASE = SolverSettings(period_ms=1_000)
LP = parse_variants(("lp",), (), BASE)[0]


def history(folder: Path, seconds: int) -> Path:
    """Write signals with an engine that leaves the fleet half-way and comes back, and a record that nobody can read."""
    run = Run()
    run.declare()
    fleet = next(place for place in run.logs if "fleet" in place[0])
    role = {EngineSignals: SIGNALS_ENGINE, Demand: SIGNALS_DEMAND, NetworkProbe: SIGNALS_NETWORK}
    for second in range(seconds):
        run.now_ms = START_MS + 1000 * (second + 1)
        if second == seconds // 2:
            run.append(fleet, b"engine-a", None)
            run.append((TABLE[SIGNALS_ENGINE].name, 1), b"engine-z", b"no signal")
        if second == seconds // 2 + 2:
            run.append(fleet, b"engine-a", encode(spec("engine-a", site="a")))
        for each in signals(second):
            topic = TABLE[role[type(each)]]
            run.append((topic.name, partition_of(each.key, topic.partitions)), each.key, encode(each))
    return run.write(folder, ticks=0, span=Span(START_MS, START_MS + 1000 * seconds))


def played(folder: Path, processes: int) -> tuple[list[PlayedTick], list[Finding]]:
    found: list[Finding] = []
    return list(signals_played(folder, LP, STREAMS, findings=found, processes=processes)), found


def children() -> list[int]:
    return sorted(each.pid or 0 for each in multiprocessing.active_children())


def test_a_variant_is_the_same_whatever_number_of_processes_folds_for_it(tmp_path: Path) -> None:
    folder = history(tmp_path / "h", seconds=12)
    alone, found = played(folder, 0)
    assert len(alone) == 10
    assert any("engine-a" not in {e.engine_id for e in tick.problem.engines} for tick in alone)
    assert any("offset" in each.sentence for each in found)
    for processes in (1, 3):
        ticks, told = played(folder, processes)
        assert [(t.now_ms, t.problem, t.snapshot, t.record) for t in ticks] == [
            (t.now_ms, t.problem, t.snapshot, t.record) for t in alone
        ]
        assert told == found


def test_a_single_variant_has_all_processes_and_gives_the_same_result(tmp_path: Path) -> None:
    folder = history(tmp_path / "h", seconds=8)
    digests: set[str] = set()
    for processes in (1, 2):
        out = tmp_path / str(processes)
        job = Job(folder, "lp", LP, BASE, out, NOTHING_MEASURED, streams=STREAMS)
        digests.add(run_variants([job], processes, lambda _: None, lambda: False)[0].digest)
    assert len(digests) == 1


def test_a_file_that_a_process_cannot_read_is_told_as_it_is_without_processes(tmp_path: Path) -> None:
    folder = history(tmp_path / "h", seconds=8)
    path = next((folder / SIGNALS_ENGINE).glob("*.avro"))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedError) as alone:
        played(folder, 0)
    with pytest.raises(DamagedError) as apart:
        played(folder, 2)
    assert str(apart.value) == str(alone.value)
    assert not children()


def test_a_process_that_is_killed_is_named_and_nothing_is_decided_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = begun(tmp_path, monkeypatch)
    os.kill(children()[0], signal.SIGKILL)
    with pytest.raises(HistoryError, match="was killed by SIGKILL before the range's end"):
        list(ticks)
    assert not children()


def test_processes_end_with_whoever_read_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = begun(tmp_path, monkeypatch)
    assert len(children()) == 2
    ticks.close()
    assert not children()


def test_a_stop_leaves_what_was_played_until_then(tmp_path: Path) -> None:
    folder, asked = history(tmp_path / "h", seconds=12), iter([False] * 4)
    job = Job(folder, "lp", LP, BASE, tmp_path / "out", NOTHING_MEASURED, streams=STREAMS)
    (ran,) = run_variants([job], 2, lambda _: None, lambda: next(asked, True))
    assert not ran.complete
    assert ran.ticks == 3
    assert ran.score is not None
    assert not children()


def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[PlayedTick]:
    """Give a run that stands after its first tick, with more before it than processes may be ahead."""
    monkeypatch.setattr(fold_processes, "PATIENCE_S", 60.0)
    ticks = signals_played(history(tmp_path / "h", seconds=400), LP, STREAMS, processes=2)
    next(ticks)
    return ticks
