"""Replay's speed: engine signals through decode, window and state, columns beside the live fold, in one run.

    python tests/bench/bench_replay.py [engines] [seconds]

Bar: 50,000 canonical engine periods per second and core (process time), states told every five seconds.
"""

import sys
import time
from collections.abc import Sequence

import numpy as np

from headrace.replay.core.columnar.engines import ColumnarEngines
from headrace.replay.core.refold import Refold
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.topics import SIGNALS_ENGINE, TopicSettings, topic_table
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

T0 = 1_700_000_000_000
TICK_S = 5
BAR = 50_000
TOPIC = topic_table(TopicSettings())[SIGNALS_ENGINE]
MEANS = ((Metric.TTFT, 0.1), (Metric.TBOT, 0.02), (Metric.E2E, 2.0))


def distribution(metric: Metric, mean_s: float, rng: np.random.Generator) -> Distribution:
    count = int(rng.poisson(8))
    if not count:
        return Distribution("llama-3.1-8b", metric, 0, 0.0, None, None, 0, 0, ())
    seconds = rng.lognormal(np.log(mean_s), 0.5, count)
    index = np.floor(np.log2(seconds) * 8).astype(int)
    counts = np.bincount(index - index.min())
    return Distribution(
        "llama-3.1-8b",
        metric,
        count,
        float(seconds.sum()),
        float(seconds.min()),
        float(seconds.max()),
        0,
        int(index.min()),
        tuple(int(each) for each in counts),
    )


def signals(engines: int, seconds: int) -> list[list[RawRecord]]:
    """Give each tick's records: every engine once a second."""
    rng = np.random.default_rng(1)
    status = EngineStatus(Health.HEALTHY, 4, 4, 4, 30.0, 2.0, 0.5)
    keys = [f"engine-{n:05d}" for n in range(engines)]
    place = [partition_of(key.encode(), TOPIC.partitions) for key in keys]
    phase = rng.integers(0, 1000, engines).tolist()
    offsets = [0] * TOPIC.partitions
    ticks: list[list[RawRecord]] = []
    for second in range(seconds):
        if second % TICK_S == 0:
            ticks.append([])
        for n, key in enumerate(keys):
            start = T0 + 1000 * second + phase[n]
            told = tuple(distribution(metric, mean, rng) for metric, mean in MEANS)
            signal = EngineSignals(key, "exporter", Vantage.ENGINE, start, start + 1000, told, status)
            at = start + 1050
            ticks[-1].append(RawRecord(TOPIC.name, place[n], offsets[place[n]], at, signal.key, encode(signal)))
            offsets[place[n]] += 1
    return ticks


def rate(fold: Refold | ColumnarEngines, ticks: Sequence[Sequence[RawRecord]]) -> float:
    """Give periods per second of process time."""
    begun = time.process_time()
    for records in ticks:
        fold.take(records, None)
        fold.told()
    return sum(map(len, ticks)) / (time.process_time() - begun)


def main(engines: int = 1000, seconds: int = 60) -> None:
    ticks = signals(engines, seconds)
    rules = StreamsSettings()
    rates = {
        "live fold, told at ticks": rate(Refold(TOPIC, rules), ticks),
        "columns": rate(ColumnarEngines(TOPIC, rules), ticks),
    }
    peer = rates["live fold, told at ticks"]
    print(f"{engines} engines, {seconds} s, a tick every {TICK_S} s")
    print(f"{'':28}{'periods/s a core':>18}{'x live':>8}{'of the bar':>12}")
    for name, found in rates.items():
        print(f"{name:28}{found:>18,.0f}{found / peer:>8.1f}{found / BAR:>12.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
