"""Cumulative series in the fold: states against a recount of what engines did, however their readings came.

Instances of an engine serve requests and are scraped; the truth is what they served. Scrapes reach the fold over
several source partitions, late by less than the grace, in any batches, repeated from any point, with workers killed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.codec import decode, encode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import (
    Lineage,
    SeriesField,
    SeriesHistogram,
    SeriesKind,
    SeriesOver,
    SeriesPart,
    SeriesReading,
)
from headrace.schemas.signals import Demand, EngineSignals, Vantage
from headrace.schemas.state import DemandState, EngineState
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.ledger import Ledger
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings(min_coverage=0.0)
PANE, WINDOW, GRACE = SETTINGS.pane_ms, SETTINGS.window_ms, SETTINGS.grace_ms
BOUNDS = (0.1, 0.2, 0.4)
MIDDLES = (0.05, 0.15, 0.3, 0.6)
T0 = 1_000_000
NOW = 10_000_000


@dataclass(frozen=True)
class Scrape:
    """What one instance had served since it began, by bucket, when it was scraped; and when that reaches the bridge."""

    instance: int
    at_ms: int
    counts: tuple[int, ...]
    gained: tuple[int, ...]
    arrives_ms: int
    partition: int


@st.composite
def scrapes(draw: st.DrawFn, period_ms: int = 1_000) -> list[Scrape]:
    """Scrapes of up to three instances, some of which restart; in the order in which they reach the bridge."""
    found: list[Scrape] = []
    for instance in range(draw(st.integers(1, 3))):
        at_ms, total = T0 + draw(st.integers(0, period_ms - 1)), (0,) * 4
        for k in range(draw(st.integers(2, 8))):
            gained = draw(st.tuples(*[st.integers(0, 5)] * 4))
            is_restart = k > 0 and sum(gained) < sum(total) and draw(st.integers(0, 5)) == 0
            total = gained if is_restart else tuple(a + b for a, b in zip(total, gained, strict=True))
            delay_ms = draw(st.integers(0, GRACE - 1))
            told = (0,) * 4 if k == 0 else gained
            found.append(Scrape(instance, at_ms, total, told, at_ms + delay_ms, draw(st.integers(0, 2))))
            at_ms += period_ms
    return sorted(found, key=lambda s: (s.arrives_ms, s.instance))


def reading(scrape: Scrape, part: SeriesPart, histogram: SeriesHistogram, offset: int, index: int) -> SeriesReading:
    return SeriesReading(
        series=scrape.instance,
        slot=scrape.instance,
        alias=0,
        field=SeriesField.TTFT,
        kind=SeriesKind.CUMULATIVE,
        part=part,
        model="m",
        instance=f"i{scrape.instance}",
        rank="",
        over_ranks=SeriesOver.SUM,
        over_instances=SeriesOver.SUM,
        at_ms=scrape.at_ms,
        start_ms=None,
        value=None,
        histogram=histogram,
        offset=offset,
        index=index,
    )


def seconds(counts: Sequence[int]) -> float:
    return math.fsum(n * s for n, s in zip(counts, MIDDLES, strict=True))


def whole(counts: Sequence[int]) -> SeriesHistogram:
    return SeriesHistogram(sum(counts), seconds(counts), None, None, BOUNDS, tuple(counts), None, 0, 0)


def sample(count: int, total: float | None = None, bound: float | None = None) -> SeriesHistogram:
    return SeriesHistogram(count, total, None, None, () if bound is None else (bound,), (), None, 0, 0)


def signal(partition: int, readings: Sequence[SeriesReading]) -> EngineSignals:
    last = readings[-1]
    lineage = Lineage("team", partition, last.offset or 0, last.index or 0, "h")
    end_ms = max(each.at_ms for each in readings)
    return EngineSignals("e", "bridge", Vantage.ENGINE, end_ms, end_ms, (), None, tuple(readings), lineage)


def in_whole(order: Sequence[Scrape]) -> list[EngineSignals]:
    return [signal(s.partition, [reading(s, SeriesPart.WHOLE, whole(s.counts), i, 0)]) for i, s in enumerate(order)]


def records(signals: Sequence[EngineSignals | Demand], role: str = SIGNALS_ENGINE) -> list[RawRecord]:
    return [
        RawRecord(f"headrace.{role}", partition_of(s.key, 8), i, NOW, s.key, encode(s)) for i, s in enumerate(signals)
    ]


def folded(signals: Sequence[EngineSignals], *, kills: bool = False, size: int = 1) -> EngineState:
    stored: dict[bytes, bytes] = {}
    fold = KeyedFold(KINDS[SIGNALS_ENGINE], SETTINGS, 8)
    every = records(signals)
    for i in range(0, len(every), size):
        if kills:
            fold = KeyedFold(KINDS[SIGNALS_ENGINE], SETTINGS, 8)
        done = fold.fold(every[i : i + size], stored.get, None)
        assert done.rejected == ()
        stored.update(done.states)
    return must(decode(EngineState, stored[b"e"]))


def pane_of(at_ms: int) -> int:
    return math.ceil(at_ms / PANE) - 1


@given(order=scrapes())
def test_the_window_equals_a_recount_of_what_the_instances_served(order: list[Scrape]) -> None:
    state = folded(in_whole(order))
    watermark = max(s.at_ms for s in order)
    inside = [s for s in order if pane_of(s.at_ms) > pane_of(watermark) - WINDOW // PANE]
    served = sum(sum(s.gained) for s in inside)
    assert sum(latency.count for latency in state.latencies) == served
    if served:
        mean = math.fsum(seconds(s.gained) for s in inside) / served
        assert state.latencies[0].mean_s == pytest.approx(mean)
    assert (state.late, state.last_signal_ms) == (0, watermark)


@given(order=scrapes())
def test_order_within_the_grace_and_the_number_of_partitions_change_nothing(order: list[Scrape]) -> None:
    in_time = sorted(order, key=lambda s: (s.at_ms, s.instance))
    one = folded(in_whole([replace(s, partition=0) for s in in_time]))
    several = folded(in_whole(order))
    assert ledger(several).book.pack() == ledger(one).book.pack()
    assert replace(several, series=None) == replace(one, series=None)


@given(order=scrapes(), data=st.data())
def test_batches_and_kills_change_no_byte(order: list[Scrape], data: st.DataObject) -> None:
    signals = in_whole(order)
    size = data.draw(st.integers(1, 5))
    assert folded(signals, kills=True, size=size) == folded(signals, size=len(signals))


@given(order=scrapes(), data=st.data())
def test_what_the_bridge_repeats_from_any_point_counts_once(order: list[Scrape], data: st.DataObject) -> None:
    signals, again = in_whole(order), list[EngineSignals]()
    for i, each in enumerate(signals):
        again.append(each)
        if data.draw(st.integers(0, 3)) == 0:
            # A bridge that is killed goes back on one of its partitions.
            back, partition = data.draw(st.integers(0, i)), data.draw(st.integers(0, 2))
            again += [s for s in signals[back : i + 1] if s.lineage is not None and s.lineage.partition == partition]
    once, twice = folded(signals), folded(again, kills=True, size=data.draw(st.integers(1, 4)))
    assert replace(twice, applied_offset=0) == replace(once, applied_offset=0)


@given(order=scrapes(), data=st.data())
def test_several_source_records_packed_into_one_signal_say_the_same(order: list[Scrape], data: st.DataObject) -> None:
    packed: list[EngineSignals] = []
    for each in in_whole(order):
        assert each.lineage is not None
        before = packed[-1].lineage if packed else None
        if before is not None and before.partition == each.lineage.partition and data.draw(st.booleans()):
            packed[-1] = signal(before.partition, [*(packed[-1].series or ()), *(each.series or ())])
        else:
            packed.append(each)
    one, other = folded(packed), folded(in_whole(order))
    assert replace(one, applied_offset=0) == replace(other, applied_offset=0)


@given(order=scrapes(), data=st.data())
def test_histograms_that_come_sample_by_sample_over_several_partitions_say_the_same(
    order: list[Scrape], data: st.DataObject
) -> None:
    apart: list[EngineSignals] = []
    for s in order:
        below = list(accumulate(s.counts))
        parts = [(SeriesPart.BUCKET, sample(n, bound=b)) for n, b in zip(below, (*BOUNDS, math.inf), strict=True)]
        parts += [(SeriesPart.SUM, sample(0, seconds(s.counts))), (SeriesPart.COUNT, sample(below[-1]))]
        for part, histogram in data.draw(st.permutations(parts)):
            partition = data.draw(st.integers(0, 2))
            apart.append(signal(partition, [reading(s, part, histogram, len(apart), 0)]))
    # One more scrape, far enough, so that all before it is final: a histogram is told once it is known to be whole.
    last = replace(order[0], at_ms=max(s.at_ms for s in order) + GRACE, counts=order[0].counts, instance=9)
    end = signal(0, [reading(last, SeriesPart.WHOLE, whole(last.counts), len(apart), 0)])
    one, other = folded([*apart, end]), folded([*in_whole(order), end])
    assert one.latencies == other.latencies
    assert (one.coverage, one.late) == (other.coverage, other.late)


def ledger(state: EngineState) -> Ledger:
    assert state.series is not None
    return Ledger.read(state.series)[0]


def arrivals(scrape: Scrape, offset: int) -> Demand:
    counted = replace(
        reading(scrape, SeriesPart.WHOLE, whole(scrape.counts), offset, 0),
        field=SeriesField.ARRIVALS,
        histogram=None,
        value=float(sum(scrape.counts)),
    )
    lineage = Lineage("team", scrape.partition, offset, 0, "h")
    return Demand("c", "m", "default", "bridge", scrape.at_ms, scrape.at_ms, 0, 0, 0, (counted,), lineage)


@given(order=scrapes())
def test_the_demand_of_counters_equals_a_recount_however_it_comes(order: list[Scrape]) -> None:
    def state_of(found: Sequence[Scrape], *, kills: bool) -> DemandState:
        stored: dict[bytes, bytes] = {}
        fold = KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 8)
        for record in records([arrivals(s, i) for i, s in enumerate(found)], SIGNALS_DEMAND):
            if kills:
                fold = KeyedFold(KINDS[SIGNALS_DEMAND], SETTINGS, 8)
            stored.update(fold.fold([record, record], stored.get, None).states)
        return must(decode(DemandState, stored[b"c|m|default"]))

    state = state_of(order, kills=True)
    in_time = sorted(order, key=lambda s: (s.at_ms, s.instance))
    assert replace(state_of(in_time, kills=False), series=None) == replace(state, series=None)
    watermark = max(s.at_ms for s in order)
    first_ms = (pane_of(watermark) + 1) * PANE - WINDOW
    arrived, covered = 0, set[int]()
    for s in order:
        before = [o.at_ms for o in order if o.instance == s.instance and o.at_ms < s.at_ms]
        if before and s.at_ms > first_ms:
            # A second's requests that began before the window are in it by their share, whole requests.
            start_ms = max(before)
            length, outside = s.at_ms - start_ms, max(0, first_ms - start_ms)
            arrived += sum(s.gained) - sum(s.gained) * outside // length
            covered |= set(range(max(first_ms, start_ms), s.at_ms))
    if covered:
        assert state.rate_rps == pytest.approx(arrived * 1_000 / len(covered))
    else:
        assert state.rate_rps is None
