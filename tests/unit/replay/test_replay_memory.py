"""A range is folded in the same memory whatever its length: nothing of a tick is kept when it has been given."""

import tracemalloc
from pathlib import Path

import pytest

from headrace.replay.core.history import Span
from headrace.replay.core.play_signals import instants
from headrace.replay.runs.folding import Folding, fold_signals
from headrace.replay.sources import container
from headrace.schemas.codec import encode
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from replay_history import START_MS, TABLE, Run
from replay_signals import signals

ROLES = {EngineSignals: SIGNALS_ENGINE, Demand: SIGNALS_DEMAND, NetworkProbe: SIGNALS_NETWORK}


def history(folder: Path, seconds: int) -> Path:
    run = Run()
    run.declare()
    for second in range(seconds):
        run.now_ms = START_MS + 1000 * (second + 1)
        for each in signals(second):
            topic = TABLE[ROLES[type(each)]]
            run.append((topic.name, partition_of(each.key, topic.partitions)), each.key, encode(each))
    return run.write(folder, ticks=0, span=Span(START_MS, START_MS + 1000 * seconds))


def peak_of(folder: Path, seconds: int) -> int:
    """Give the most bytes that are held while a range is folded, tick by tick."""
    ticks = instants(Span(START_MS, START_MS + 1000 * seconds), 1_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in fold_signals(Folding(folder, StreamsSettings(), None, ticks), []))
        assert count == len(ticks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_range_five_times_as_long_is_folded_in_the_same_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "SYNC_BYTES", 4_096)
    short, long = history(tmp_path / "short", 100), history(tmp_path / "long", 500)
    peak_of(short, 100)  # what is imported and cached at the first run counts for neither
    assert peak_of(long, 500) < 1.5 * peak_of(short, 100)  # what 400 ticks say is six times as much
