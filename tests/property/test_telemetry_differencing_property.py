"""Invariants of differencing and spreading, held against a plain recount of what the engine really did."""

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.check_signals import check_signal
from headrace.schemas.signals import EngineSignals, Metric, Vantage
from headrace.streams.core.decode.contract import Explicit, Exponential
from headrace.streams.core.differencing.book import SeriesBook
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.differencing.spread import distribution
from headrace.streams.core.differencing.subtract import Fell, subtract
from headrace.streams.core.mapping.reading import Reading
from headrace.streams.core.mapping.units import coarser
from telemetry_inputs import reading

STEP_MS = 15_000
BOUNDS = (0.1, 0.2, 0.4)
MIDDLES = (0.05, 0.15, 0.3, 0.8)

periods = st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=12)
"""What an engine did in each period: requests by bucket."""


def as_histogram(counts: tuple[int, ...]) -> Explicit:
    return Explicit(BOUNDS, counts, sum(counts), sum(n * m for n, m in zip(counts, MIDDLES, strict=True)))


def cumulative(lives: list[list[tuple[int, ...]]]) -> list[Reading]:
    """Give what a scraper sees of an engine that lived several lives: each counts from its own zero."""
    seen: list[Reading] = []
    for life, done in enumerate(lives):
        start_ms = len(seen) * STEP_MS + 1_000 * (life > 0)
        for counts in accumulate(done, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True))):
            seen.append(reading((len(seen) + 1) * STEP_MS, as_histogram(counts), start_ms=start_ms))
    return seen


def observed(deltas: list[Delta]) -> tuple[int, ...]:
    total = [0, 0, 0, 0]
    for delta in deltas:
        assert isinstance(delta.histogram, Explicit)
        total = [a + b for a, b in zip(total, delta.histogram.counts, strict=True)]
    return tuple(total)


def taken(readings: list[Reading]) -> list[Delta]:
    book = SeriesBook()
    return [o for o in (book.take(each) for each in readings) if isinstance(o, Delta)]


@given(periods)
def test_differences_add_up_to_what_the_engine_did_after_the_baseline(done: list[tuple[int, ...]]) -> None:
    expected = tuple(sum(column) for column in zip(*done[1:], strict=True)) or (0, 0, 0, 0)
    assert observed(taken(cumulative([done]))) == expected


@given(st.lists(periods, min_size=1, max_size=4))
def test_restarts_lose_only_the_baseline_and_never_count_anything_twice(lives: list[list[tuple[int, ...]]]) -> None:
    everything = [counts for life in lives for counts in life]
    expected = tuple(sum(column) for column in zip(*everything[1:], strict=True)) or (0, 0, 0, 0)
    deltas = taken(cumulative(lives))
    assert observed(deltas) == expected
    assert all(d.histogram is not None and min(d.histogram.counts) >= 0 for d in deltas)


@given(periods, st.lists(st.integers(0, 20), max_size=10))
def test_duplicates_and_late_repeats_change_nothing(done: list[tuple[int, ...]], repeats: list[int]) -> None:
    seen = cumulative([done])
    with_repeats: list[Reading] = []
    for i, each in enumerate(seen):
        with_repeats.append(each)
        with_repeats += [seen[r % (i + 1)] for r in repeats]
    assert observed(taken(with_repeats)) == observed(taken(seen))


@given(periods, st.permutations(range(12)))
def test_any_order_gives_no_negative_and_nothing_that_did_not_happen(
    done: list[tuple[int, ...]], order: list[int]
) -> None:
    seen = cumulative([done])
    shuffled = [seen[i] for i in order if i < len(seen)]
    total = observed(taken(shuffled))
    whole = tuple(sum(column) for column in zip(*done, strict=True))
    assert all(0 <= a <= b for a, b in zip(total, whole, strict=True))


@given(st.lists(periods, min_size=1, max_size=3), st.data())
def test_packing_at_any_moment_changes_no_outcome_and_no_byte(
    lives: list[list[tuple[int, ...]]], data: st.DataObject
) -> None:
    seen = cumulative(lives)
    cuts = data.draw(st.sets(st.integers(0, len(seen))))
    straight, packed = SeriesBook(), SeriesBook()
    for i, each in enumerate(seen):
        if i in cuts:
            packed = SeriesBook.read(packed.pack())
        assert packed.take(each) == straight.take(each)
    assert packed.pack() == straight.pack()


bounds = st.lists(st.floats(1e-5, 1e4), min_size=1, max_size=25, unique=True).map(lambda found: tuple(sorted(found)))


@st.composite
def explicits(draw: st.DrawFn) -> Explicit:
    chosen = draw(bounds)
    counts = draw(st.lists(st.integers(0, 10**9), min_size=len(chosen) + 1, max_size=len(chosen) + 1))
    total = draw(st.floats(0, 1e6)) if sum(counts) else 0.0
    return Explicit(chosen, tuple(counts), sum(counts), total)


@st.composite
def exponentials(draw: st.DrawFn) -> Exponential:
    counts = tuple(draw(st.lists(st.integers(0, 10**9), max_size=40)))
    zeros = draw(st.integers(0, 5))
    return Exponential(
        draw(st.integers(-4, 8)), zeros, draw(st.integers(-2000, 2000)), counts, zeros + sum(counts), float(sum(counts))
    )


@settings(max_examples=300)
@given(st.one_of(explicits(), exponentials()))
def test_a_spread_keeps_count_and_sum_and_is_a_sound_signal(source: Explicit | Exponential) -> None:
    found = distribution("m", Metric.TTFT, source)
    assert (found.count, found.sum_s) == (source.observations, source.total)
    assert found.zero_count + sum(found.bucket_counts) == found.count
    assert check_signal(EngineSignals("e", "s", Vantage.ENGINE, 0, 1, (found,), None), 1) is None


@given(explicits(), st.lists(st.integers(0, 10**6), min_size=26, max_size=26))
def test_subtracting_gives_back_what_was_added(before: Explicit, added: list[int]) -> None:
    gained = tuple(added[: len(before.counts)])
    counts = tuple(a + b for a, b in zip(before.counts, gained, strict=True))
    after = Explicit(before.bounds, counts, sum(counts), (before.total or 0.0) + 1.0)
    between = subtract(after, before)
    assert isinstance(between, Explicit)
    assert between.counts == gained
    assert isinstance(subtract(before, after), Fell)


@given(exponentials(), st.integers(-6, 8))
def test_a_coarser_exponential_histogram_holds_the_same_observations(source: Exponential, scale: int) -> None:
    found = coarser(source, scale)
    assert sum(found.counts) == sum(source.counts)
    assert found.scale == (min(source.scale, scale))
    for i, count in enumerate(source.counts):
        if count and scale < source.scale:
            assert 0 <= ((source.offset + i) >> (source.scale - scale)) - found.offset < len(found.counts)
