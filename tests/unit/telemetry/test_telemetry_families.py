"""Histograms put together from samples that come one by one, out of order, twice, late or not at all."""

import pytest

from headrace.schemas.dead_letters import RejectReason
from headrace.streams.core.decode import families
from headrace.streams.core.decode.contract import Explicit, Kind, Point, Temporality
from headrace.streams.core.decode.families import Pending, assemble, families_in, finish

H = frozenset(["h"])


def sample(name: str, value: float | None, time_ms: int, le: str | None = None, **labels: str) -> Point:
    pairs = {**labels, **({"le": le} if le is not None else {})}
    known = tuple(sorted(pairs.items()))
    return Point(name, known, Kind.UNTYPED, Temporality.INSTANT, time_ms, None, value, None, "", 0)


def whole(time_ms: int, low: int, count: int, total: float | None = 1.0, **labels: str) -> list[Point]:
    """Give the samples of a histogram with one bound, 0.5."""
    return [
        sample("h_bucket", low, time_ms, "0.5", **labels),
        sample("h_bucket", count, time_ms, "+Inf", **labels),
        sample("h_sum", total, time_ms, **labels),
        sample("h_count", count, time_ms, **labels),
    ]


def histograms(points: tuple[Point, ...]) -> list[tuple[int, object]]:
    return [(p.time_ms, p.histogram) for p in points]


def test_a_first_histogram_waits_since_nobody_knows_yet_which_bounds_it_has() -> None:
    pending = Pending()
    assert assemble(pending, whole(0, 1, 2), H).points == ()
    assert histograms(finish(pending).points) == [(0, Explicit((0.5,), (1, 1), 2, 1.0))]
    assert pending.waiting == 0


def test_once_its_bounds_are_known_a_histogram_is_given_with_its_last_sample() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2), H)
    finish(pending)
    *most, last = whole(15_000, 3, 4)
    assert assemble(pending, most, H).points == ()
    assert histograms(assemble(pending, [last], H).points) == [(15_000, Explicit((0.5,), (3, 1), 4, 1.0))]


def test_an_instant_that_lacks_a_sample_is_given_when_two_newer_ones_have_begun() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2), H)
    assemble(pending, whole(1, 1, 2)[:1], H)
    assert histograms(assemble(pending, whole(2, 1, 2)[:1], H).points) == [(0, Explicit((0.5,), (1, 1), 2, 1.0))]


def test_a_lost_bucket_makes_a_coarser_histogram_and_does_not_teach_that_the_bound_is_gone() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2), H)
    finish(pending)
    assemble(pending, whole(1, 1, 3)[1:], H)
    assert histograms(finish(pending).points) == [(1, Explicit((), (3,), 3, 1.0))]
    assert histograms(assemble(pending, whole(2, 2, 5), H).points) == [(2, Explicit((0.5,), (2, 3), 5, 1.0))]


def test_two_scrapes_in_one_cut_second_go_on_with_the_larger_counts() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2) + whole(0, 2, 5, total=2.5), H)
    assert histograms(finish(pending).points) == [(0, Explicit((0.5,), (2, 3), 5, 2.5))]


def test_a_second_scrape_of_an_instant_already_given_is_given_too_for_the_difference_to_judge() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2), H)
    finish(pending)
    assert len(assemble(pending, whole(0, 2, 5), H).points) == 1


def test_a_sample_that_comes_after_its_histogram_was_given_is_rejected() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2), H)
    finish(pending)
    assemble(pending, whole(0, 1, 2)[1:2], H)
    done = finish(pending)
    assert (done.points, done.rejects[0].reason) == ((), RejectReason.INCONSISTENT)


def test_samples_of_different_series_do_not_meet() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2, e="1") + whole(0, 3, 4, e="2"), H)
    assert [p.labels for p in finish(pending).points] == [(("e", "1"),), (("e", "2"),)]


def test_a_stale_marker_for_every_sample_is_missing_and_not_zero() -> None:
    pending = Pending()
    stale = [p._replace(value=None) for p in whole(0, 0, 0)]
    assemble(pending, stale, H)
    (point,) = finish(pending).points
    assert point.is_missing


def test_a_sum_that_is_nan_leaves_the_counts() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2, total=None), H)
    assert histograms(finish(pending).points) == [(0, Explicit((0.5,), (1, 1), 2, None))]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([sample("h_bucket", 1, 0)], "without the label le"),
        ([sample("h_bucket", 1, 0, "NaN")], "expected a bound"),
        ([sample("h_bucket", 1, 0, "-Inf")], "expected a bound"),
        ([sample("h_bucket", 1, 0, "wide")], "expected a number"),
        ([sample("h_bucket", 1.5, 0, "1")], "expected a whole number"),
        ([sample("h_count", -1, 0)], "0 to"),
    ],
)
def test_samples_that_cannot_be_used_say_why(samples: list[Point], says: str) -> None:
    pending = Pending()
    (rejected,) = assemble(pending, samples, H).rejects
    assert says in rejected.detail


def test_a_histogram_whose_count_never_came_is_rejected() -> None:
    pending = Pending()
    assemble(pending, whole(0, 1, 2)[:1], H)
    assert "never came" in finish(pending).rejects[0].detail


def test_what_is_no_histogram_passes_and_a_family_is_known_by_its_buckets() -> None:
    points = [sample("g", 1, 0), sample("x_count", 1, 0), *whole(0, 1, 2)]
    assert families_in(points) == H
    assert [p.name for p in assemble(Pending(), points, H).points] == ["g", "x_count"]


def test_what_waits_is_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "MAX_PENDING", 3)
    pending = Pending()
    done = assemble(pending, [sample("h_count", 1, 0, e=str(i)) for i in range(5)], H)
    assert pending.waiting == 3
    assert [r.reason for r in done.rejects] == [RejectReason.TOO_LARGE] * 2
    assemble(pending, [p for i in range(5) for p in whole(1, 1, 2, e=str(i))], H)
    finish(pending)
    assert len(pending.last) <= 3
