"""Signals folded anew are compared with recorded ticks over the time that both have, whatever their periods."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from headrace.infra.cli import headrace
from headrace.replay.core.history import HistoryError, Span
from headrace.schemas.codec import encode
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK
from headrace.streams.core.partitioner import partition_of
from replay_history import START_MS, TABLE, Run
from replay_signals import signals

ROLE = {EngineSignals: SIGNALS_ENGINE, Demand: SIGNALS_DEMAND, NetworkProbe: SIGNALS_NETWORK}


def history(folder: Path, seconds: int, ticks: range) -> Path:
    """Write a run with the signals behind it, of which the solver ticked at these seconds alone."""
    run = Run()
    run.declare()
    for second in range(seconds):
        run.beat()
        for signal in signals(second):
            topic = TABLE[ROLE[type(signal)]]
            run.append((topic.name, partition_of(signal.key, topic.partitions)), signal.key, encode(signal))
        if second in ticks:
            run.tick()
        else:
            run.now_ms += 1000
    return run.write(folder, span=Span(START_MS, START_MS + 1000 * seconds))


def asked(folder: Path, out: Path, *policies: str) -> Result:
    typed = ["replay", "run", "--dir", str(folder), "--from-signals", "--out", str(out), "--processes", "1"]
    return CliRunner().invoke(headrace, [*typed, *(part for policy in policies for part in ("--policy", policy))])


@pytest.mark.parametrize(
    ("ticks", "begins", "ends"), [(range(16), 4_000, 16_000), (range(5, 16), 7_000, 16_000), (range(11), 4_000, 10_000)]
)
def test_recorded_ticks_and_signals_are_scored_over_the_same_whole_periods(
    ticks: range, begins: int, ends: int, tmp_path: Path
) -> None:
    result = asked(
        history(tmp_path / "h", 16, ticks), tmp_path / "o", "lp", "slow=lp:period_ms=3000", "quick=lp:period_ms=500"
    )
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = orjson.loads((tmp_path / "o" / "comparison.json").read_bytes())
    periods = [1_000, 1_000, 3_000, 500]
    assert [each["seconds"] for each in found["variants"]] == [found["variants"][0]["seconds"]] * 4
    assert [each["ticks"] * p for each, p in zip(found["variants"], periods, strict=True)] == [ends - begins] * 4
    assert found["from_ms"] == START_MS + begins


def test_signals_that_were_recorded_after_the_last_tick_only_have_no_time_in_common(tmp_path: Path) -> None:
    result = asked(history(tmp_path / "h", 8, range(1)), tmp_path / "o", "lp")
    assert isinstance(result.exception, HistoryError)
    assert "have no whole period of 1000 ms in common" in str(result.exception)
