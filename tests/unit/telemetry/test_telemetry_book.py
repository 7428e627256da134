"""All series of one engine: which alias speaks, what is bounded, gauges over ranks and instances, bytes and back."""

import pytest

from headrace.streams.core.decode.contract import Exponential, Temporality
from headrace.streams.core.differencing.book import (
    OTHER,
    BookOutcome,
    Folded,
    Latest,
    SeriesBook,
    Superseded,
    UnreadableBookError,
)
from headrace.streams.core.differencing.gauges import combine, instances
from headrace.streams.core.differencing.level import Baseline, Delta, Missing, OutOfOrder, Since
from headrace.streams.core.mapping.reading import Field, Over, Reading
from telemetry_inputs import Folded as Outcomes
from telemetry_inputs import explicit, mapped, reading, records

STEP = 15_000


def ttft(step: int, count: int, alias: int = 0, **changes: object) -> Reading:
    """Give a cumulative count under the name `alias` of slot 1, all in the lowest bucket, 0.05 s each."""
    histogram = explicit(count, 0, 0, 0, total=count * 0.05)
    return reading(step * STEP, histogram, series=100 + alias, slot=1, alias=alias, **changes)


def gauge(value: float | None, at_ms: int = 0, instance: str = "i1", rank: str = "0", **changes: object) -> Reading:
    base = reading(at_ms)
    identity = base.identity._replace(instance=instance, rank=rank)
    slot = int.from_bytes(f"{instance}/{rank}".encode()) % 2**63
    return base._replace(
        identity=identity, field=Field.RUNNING, value=value, slot=slot, series=slot, temporality=Temporality.INSTANT
    )._replace(**changes)


def take(book: SeriesBook, *readings: Reading) -> list[BookOutcome]:
    return [book.take(each) for each in readings]


def requests(outcomes: list[BookOutcome]) -> int:
    return sum(o.histogram.observations for o in outcomes if isinstance(o, Delta) and o.histogram is not None)


def test_two_names_of_one_series_are_never_added_up() -> None:
    book = SeriesBook()
    outcomes = take(book, *(ttft(step, 10 * (step + 1), alias) for step in range(5) for alias in (0, 1)))
    assert requests(outcomes) == 40
    assert outcomes[1] == Superseded(0)


def test_an_upgrade_that_drops_the_old_name_hands_over_without_a_gap_or_a_sum() -> None:
    old = [ttft(step, 10 * (step + 1), alias=1) for step in range(6)]
    new = [ttft(step, 10 * (step + 1), alias=0) for step in range(3, 9)]
    book = SeriesBook()
    outcomes = take(book, *sorted(old + new, key=lambda r: (r.time_ms, -r.alias)))
    assert requests(outcomes) == 80
    assert book.tally.resets == 0


def test_a_rollback_brings_the_old_name_back_once_the_new_one_has_been_silent_for_a_minute() -> None:
    book = SeriesBook()
    both = take(book, *(ttft(step, 10 * (step + 1), alias) for step in range(3) for alias in (0, 1)))
    after = take(book, *(ttft(step, 10 * (step + 1), alias=1) for step in range(3, 9)))
    assert requests(both) == 20
    assert [type(o) for o in after] == [Superseded] * 4 + [Delta] * 2
    # A point of the preferred name out of the past does not take the word back.
    assert isinstance(take(book, ttft(3, 40, alias=0))[0], Superseded)


def test_a_preferred_gauge_replaces_the_other_at_the_same_instant() -> None:
    book = SeriesBook()
    outcomes = take(book, gauge(9.0, alias=1), gauge(3.0, alias=0), gauge(9.0, alias=1))
    assert outcomes == [Latest(), Latest(), Superseded(0)]
    assert combine(book.gauges.values(), Field.RUNNING, 0, 60_000) == 3.0


def test_gauges_take_the_newest_and_missing_is_not_zero() -> None:
    book = SeriesBook()
    assert take(book, gauge(5.0, 1_000), gauge(None, 2_000), gauge(7.0, 500)) == [
        Latest(),
        Missing("NO_RECORDED_VALUE"),
        OutOfOrder(500),
    ]
    assert combine(book.gauges.values(), Field.RUNNING, 2_000, 60_000) == 5.0


def test_gauges_go_over_all_ranks_first_and_over_instances_then() -> None:
    book = SeriesBook()
    how = {"field": Field.KV_USAGE, "over_ranks": Over.MAX, "over_instances": Over.MEAN}
    take(
        book,
        gauge(0.2, rank="0", **how),
        gauge(0.6, rank="1", **how),
        gauge(0.4, instance="i2", **how),
        gauge(3.0, rank="2"),
        gauge(4.0, rank="3"),
    )
    assert combine(book.gauges.values(), Field.KV_USAGE, 0, 60_000) == pytest.approx((0.6 + 0.4) / 2)
    assert combine(book.gauges.values(), Field.RUNNING, 0, 60_000) == 7.0
    assert instances(book.gauges.values(), 0, 60_000) == 2


@pytest.mark.parametrize(("how", "expected"), [(Over.SUM, 6.0), (Over.MEAN, 2.0), (Over.MAX, 3.0), (Over.MIN, 1.0)])
def test_each_way_to_put_ranks_together(how: Over, expected: float) -> None:
    book = SeriesBook()
    take(book, *(gauge(float(i), rank=str(i), over_ranks=how) for i in (1, 2, 3)))
    assert combine(book.gauges.values(), Field.RUNNING, 0, 60_000) == expected


def test_a_frozen_gauge_expires_and_nothing_fresh_is_unknown() -> None:
    book = SeriesBook()
    take(book, gauge(99.0, 0, rank="gone"), gauge(1.0, 61_000, rank="here"))
    assert combine(book.gauges.values(), Field.RUNNING, book.newest_ms, 60_000) == 1.0
    assert combine(book.gauges.values(), Field.RUNNING, 200_000, 60_000) is None
    assert combine(book.gauges.values(), Field.WAITING, 0, 60_000) is None


def test_more_series_than_allowed_are_folded_and_those_that_were_there_go_on() -> None:
    book = SeriesBook(max_series=3)
    flood = [reading(0, explicit(1, 0, 0, 0, total=0.1), series=i, slot=i) for i in range(10)]
    assert take(book, *flood) == [Baseline(Since.FIRST)] * 3 + [Folded(3)] * 7
    following = reading(STEP, explicit(2, 0, 0, 0, total=0.2), series=2, slot=2)
    assert requests(take(book, following)) == 1
    assert book.tally.folded == 7
    assert take(book, *(gauge(1.0, rank=str(i)) for i in range(5)))[3:] == [Folded(3)] * 2
    delta = reading(STEP, explicit(4, 0, 0, 0, total=0.4), series=99, slot=99, temporality=Temporality.DELTA)
    assert requests(take(book, delta)) == 4, "a delta needs no memory, so it counts"


def test_series_that_fell_silent_make_room() -> None:
    book = SeriesBook(max_series=2)
    take(book, reading(0, 1.0, series=1, slot=1), reading(0, 1.0, series=2, slot=2))
    take(book, reading(1_000_000, 5.0, series=2, slot=2))
    assert take(book, reading(1_000_000, 1.0, series=3, slot=3)) == [Baseline(Since.FIRST)]
    assert set(book.levels) == {2, 3}


def test_a_million_label_values_need_no_more_memory_than_the_bound() -> None:
    book = SeriesBook(max_series=50)
    for i in range(20_000):
        book.take(reading(i, explicit(1, 0, 0, 0, total=0.1), series=i, slot=i))
        book.take(gauge(1.0, at_ms=i, slot=i + 10**6)._replace(identity=reading(0).identity._replace(instance=str(i))))
    assert len(book.levels) <= 50
    assert len(book.gauges) <= 50
    assert len(book._speakers) <= 101
    assert len(book._since) <= 50
    assert len(book.pack()) < 20_000


def test_models_beyond_the_bound_count_as_other() -> None:
    book = SeriesBook(max_models=2)
    named = [reading(0)._replace(identity=reading(0).identity._replace(model=m)) for m in ("a", "b", "c", "a")]
    assert [book.model_of(each) for each in named] == ["a", "b", OTHER, "a"]
    assert SeriesBook.read(book.pack()).model_of(named[2]) == OTHER


def test_a_new_series_of_a_watched_instance_counts_from_its_start() -> None:
    book = SeriesBook()
    take(book, gauge(1.0, 0))
    born = reading(2 * STEP, explicit(4, 0, 0, 0, total=0.4), start_ms=STEP)
    assert requests(take(book, born)) == 4
    strange = born._replace(identity=born.identity._replace(instance="unwatched"), series=2, slot=2)
    assert take(book, strange) == [Baseline(Since.FIRST)]


def test_a_book_packs_to_bytes_and_goes_on_from_them_as_if_never_packed() -> None:
    readings = list(mapped("otlp_json", records("otel_kafka_otlp_json")).readings)
    exponential = reading(0, Exponential(3, 1, -9, (1, 2), 4, 1.5), series=5, slot=5)
    readings += [exponential, reading(0, 3.0, start_ms=-5, series=6, slot=6)]
    whole, packed = Outcomes(), Outcomes()
    whole.take(readings)
    for each in readings:
        packed.book = SeriesBook.read(packed.book.pack())
        packed.take([each])
    assert packed.outcomes == whole.outcomes
    assert packed.book.pack() == whole.book.pack()
    assert SeriesBook.read(b"").pack() == SeriesBook().pack()


@pytest.mark.parametrize("packed", [b"\x01", b"\x90", b"\xff" * 20, b"\x9b" + b"\x07" + b"\xc0" * 10, b"x"])
def test_bytes_that_are_no_book_are_told(packed: bytes) -> None:
    with pytest.raises(UnreadableBookError):
        SeriesBook.read(packed)


def test_what_happened_is_counted() -> None:
    book = SeriesBook()
    take(book, ttft(0, 10), ttft(1, 12), ttft(1, 12), ttft(0, 11), ttft(2, 3), reading(3 * STEP, series=100, slot=1))
    tally = book.tally
    counts = (tally.resets, tally.out_of_order, tally.duplicates, tally.missing, tally.folded)
    assert counts == (1, 1, 1, 1, 0)
