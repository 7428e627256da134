"""Engine signals folded as columns come to the states of the live fold, value for value, whatever comes in between."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.replay.core.columnar.engine_windows import EngineWindows, pooled_windows
from headrace.replay.core.columnar.engines import ColumnarEngines, without_percentiles
from headrace.replay.core.refold import Refold
from headrace.replay.core.told import pooled
from headrace.schemas.check_state import State
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Outcomes, Vantage
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_ENGINE, TopicSettings, topic_table
from headrace.solver.core.inputs.pooled_window import pooled_window
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

TOPIC = topic_table(TopicSettings(partitions=2))[SIGNALS_ENGINE]
T = TypeVar("T")
T0 = 1_700_000_000_000
ENGINES = ("a", "b", "c")
AFTER_MS = (0, 0, 0, 0, 0, 0, 0, 0, 300, 2_500, 9_000, 30_000, -400, -1_000, -5_000)
"""How long after the newest end of its engine a period begins: mostly at once."""
ELSEWHERE_MS = (0, 0, 0, 300, 1_000, 1_000, 2_500, 9_500, 30_000, -700, -1_600, -2_500, -5_000, -12_000)
"""How long after its engine's newest end, or a gateway's last, a gateway's period ends."""
LENGTH_MS = (1_000, 1_000, 1_000, 1_000, 500, 250, 1_700, 15_000, 0)
VANTAGES = (*[Vantage.ENGINE] * 20, Vantage.UNKNOWN, Vantage.GATEWAY)
BESIDE = next(each for each in (*ENGINES[1:], "d", "e") if partition_of(each.encode(), 2) == partition_of(b"a", 2))
seeds = st.integers(0, 2**32 - 1)


class Dice:
    """Draws by a seed: a whole log is one number, which is quicker to draw than its parts."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.integers(len(choices)))]

    def below(self, end: int) -> int:
        return int(self.rng.integers(end))

    def seconds(self) -> float:
        return float(self.rng.exponential(3.0))

    def maybe(self, value: T) -> T | None:
        return value if self.below(3) else None

    def distribution(self, metric: Metric) -> Distribution:
        model = self.pick(("m", "m", "m", "other-model"))
        counts = tuple(self.below(300 if self.below(4) == 0 else 60) for _ in range(self.below(5)))
        zeros = self.below(3)
        count = zeros + sum(counts)
        if not count:
            return Distribution(model, metric, 0, 0.0, None, None, 0, 0, counts)
        low = self.maybe(self.seconds())
        high = None if low is None else low + self.seconds()
        return Distribution(model, metric, count, self.seconds(), low, high, zeros, self.below(80) - 60, counts)

    def status(self) -> EngineStatus | None:
        whole, parts = (self.maybe(self.below(9)) for _ in range(3)), (self.maybe(self.seconds()) for _ in range(2))
        return self.maybe(EngineStatus(self.pick(list(Health)), *whole, *parts, self.maybe(float(self.rng.random()))))

    def outcomes(self) -> tuple[Outcomes, ...] | None:
        """Draw what a period tells of how requests ended: nothing, of no model, of several, zeros."""
        if self.below(4) == 0:
            return None
        models = [model for model in ("other-model", "m", "third") if self.below(2)]
        return tuple(Outcomes(model, self.below(3) * self.below(20), self.below(3)) for model in models)

    def log(self, kind: str | None = None) -> list[RawRecord]:
        """Draw a log of a kind: "regular", "counted" by engines and gateways, or "wild"."""
        newest = dict.fromkeys(ENGINES, T0 + self.below(1_000))
        heard = dict(newest)
        kind = kind or self.pick(("regular", "counted", "wild"))
        only_gateways = self.pick((None, "c"))
        offsets, records = [0, 0], list[RawRecord]()
        for _ in range(self.below(120 if kind == "counted" else 60)):
            engine = self.pick(ENGINES)
            if kind == "counted" and (engine == only_gateways or self.below(2)):
                signal = self.from_elsewhere(engine, self.pick((newest, heard))[engine])
                heard[engine] = signal.period_end_ms
            else:
                signal = self.from_itself(engine, newest[engine], kind)
                newest[engine] = max(newest[engine], signal.period_end_ms)
            partition, at_ms = partition_of(signal.key, 2), signal.period_end_ms + 50
            records.append(RawRecord(TOPIC.name, partition, offsets[partition], at_ms, signal.key, encode(signal)))
            offsets[partition] += 1
            if self.below(40) == 0:
                records.append(records[-1])
        return records

    def from_itself(self, engine: str, newest_ms: int, kind: str) -> EngineSignals:
        start = newest_ms + (self.pick(AFTER_MS) if kind == "wild" else 0)
        end = start + (self.pick(LENGTH_MS) if kind == "wild" else 1_000)
        vantage = self.pick(VANTAGES) if kind == "wild" else Vantage.ENGINE
        ended = None if kind == "regular" else self.outcomes()
        return EngineSignals(engine, "src", vantage, start, end, self.told(), self.status(), outcomes=ended)

    def from_elsewhere(self, engine: str, about_ms: int) -> EngineSignals:
        end, vantage = about_ms + self.pick(ELSEWHERE_MS), self.pick((Vantage.GATEWAY, Vantage.GATEWAY, Vantage.CLIENT))
        return EngineSignals(
            engine, "gw", vantage, end - 1_000, end, self.told(), self.status(), outcomes=self.outcomes()
        )

    def told(self) -> tuple[Distribution, ...]:
        return tuple(self.distribution(metric) for metric in Metric if self.below(2))


def table_of(fold: Refold | ColumnarEngines, records: list[RawRecord], cuts: list[int]) -> dict[bytes, State]:
    table: dict[bytes, State] = {}
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        fold.take(records[start:end], None)
        table.update(fold.told())
    return table


def alike(table: dict[bytes, State]) -> dict[bytes, State]:
    return {key: without_percentiles(state) for key, state in table.items()}


@given(seeds)
def test_columns_fold_to_the_states_of_the_live_fold(seed: int) -> None:
    dice = Dice(seed)
    rules, records = StreamsSettings(grace_ms=dice.pick((2_000, 1_000, 700, 0))), dice.log()
    cuts = sorted(dice.below(len(records) + 1) for _ in range(dice.below(5)))
    live = table_of(Refold(TOPIC, rules), records, cuts)
    assert table_of(ColumnarEngines(TOPIC, rules), records, cuts) == alike(live)
    assert table_of(ColumnarEngines(TOPIC, rules), records, []) == alike(live)


@given(seeds)
def test_engines_whose_requests_are_counted_stay_in_columns(seed: int) -> None:
    dice = Dice(seed)
    rules = StreamsSettings(grace_ms=dice.pick((2_000, 1_000, 700, 0)), window_ms=dice.pick((10_000, 6_000)))
    records = dice.log("counted")
    cuts = sorted(dice.below(len(records) + 1) for _ in range(dice.below(5)))
    columns = ColumnarEngines(TOPIC, rules)
    assert table_of(columns, records, cuts) == alike(table_of(Refold(TOPIC, rules), records, cuts))
    assert not columns._over


@given(seeds)
def test_windows_are_pooled_of_columns_as_of_states(seed: int) -> None:
    dice = Dice(seed)
    records = dice.log()
    columns, windows, table = ColumnarEngines(TOPIC, StreamsSettings()), EngineWindows(), dict[bytes, EngineState]()
    ends = [*sorted(dice.below(len(records) + 1) for _ in range(dice.below(5))), len(records)]
    for begin, end in pairwise([0, *ends]):
        columns.take(records[begin:end], None)
        regular, live = columns.told_columns()
        told = {} if regular is None else dict(regular.states())
        if regular is not None:
            assert dict(pooled_windows(regular)) == {key: pooled_window(s.latencies) for key, s in told.items()}
            assert dict(regular.bare_states()) == {key: replace(state, latencies=()) for key, state in told.items()}
            windows.take(regular)
        for key, state in live.items():
            windows.put(key, state)
        table |= told | live
        if dice.below(4) == 0:
            key = dice.pick(ENGINES).encode()
            table.pop(key, None)
            windows.forget(key)
        assert windows.pooled() == pooled(table)


@given(seeds)
def test_columns_go_on_from_recorded_states(seed: int) -> None:
    dice = Dice(seed)
    rules, records = StreamsSettings(), dice.log()
    cut = dice.below(len(records) + 1)
    first = Refold(TOPIC, rules)
    first.take(records[:cut], None)
    states = {key: each.state() for key, each in first._accumulators.items()}
    columns, live = ColumnarEngines(TOPIC, rules), Refold(TOPIC, rules)
    columns.begin(states)
    live.begin(states)
    rest = records[max(0, cut - 3) :]
    assert alike(states | table_of(columns, rest, [])) == alike(states | table_of(live, rest, []))


@given(st.binary(max_size=60), st.integers(0, 79), st.sampled_from((Vantage.ENGINE, Vantage.GATEWAY)))
@example(b"\x00\x00\x00\x00\x00\x02" + b"\x80" * 8, 47, Vantage.ENGINE)  # an array whose items end nowhere in the batch
@example(b"\x80", 21, Vantage.ENGINE)  # a model that is no text
def test_damaged_bytes_are_refused_as_the_live_fold_refuses_them(damage: bytes, at: int, vantage: Vantage) -> None:
    e2e, ended = Distribution("m", Metric.E2E, 3, 1.5, 0.2, 0.9, 0, -16, (1, 1, 1)), (Outcomes("m", 3, 0),)
    good = EngineSignals("a", "src", vantage, T0, T0 + 1_000, (e2e,), None, outcomes=ended)
    value, later = encode(good), replace(good, period_start_ms=T0 + 1_000, period_end_ms=T0 + 2_000)
    cut = 10 + at % (len(value) - 10)
    broken = value[:cut] + damage + value[cut + len(damage) :]
    beside = encode(replace(good, engine_id=BESIDE))
    told = [(b"a", value), (b"a", broken), (BESIDE.encode(), beside), (b"a", encode(later))]
    partition = partition_of(b"a", 2)
    records = [RawRecord(TOPIC.name, partition, n, T0 + 2_000, *each) for n, each in enumerate(told)]
    columns, live = ColumnarEngines(TOPIC, StreamsSettings()), Refold(TOPIC, StreamsSettings())
    assert table_of(columns, records, []) == alike(table_of(live, records, []))
    assert columns.findings() == live.findings()
