import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.streams.core.panes import PaneGrid, covered, covered_ms
from headrace.streams.settings import StreamsSettings

GRID = PaneGrid.of(StreamsSettings())


@pytest.mark.parametrize(("end_ms", "pane"), [(0, -1), (1, 0), (999, 0), (1000, 0), (1001, 1), (2000, 1), (12_500, 12)])
def test_a_period_belongs_to_the_pane_in_which_it_ends(end_ms: int, pane: int) -> None:
    assert GRID.index(end_ms) == pane


def test_the_window_is_the_last_ten_panes_up_to_that_of_the_watermark() -> None:
    assert GRID.first_in_window(20_000) == 10
    assert GRID.first_in_window(20_001) == 11


def test_the_window_is_full_at_a_panes_end_and_shorter_inside_a_pane() -> None:
    assert GRID.window_ms(20_000) == 10_000
    assert GRID.window_ms(20_250) == 9_250


@pytest.mark.parametrize(("watermark_ms", "first_open"), [(10_000, 7), (10_001, 8), (10_999, 8), (11_000, 8)])
def test_a_pane_is_open_as_long_as_its_end_is_within_the_grace(watermark_ms: int, first_open: int) -> None:
    # pane 7 ends at 8000: exactly two seconds behind 10,000, and further behind 10,001
    assert GRID.first_open(watermark_ms) == first_open


def test_a_state_describes_the_end_of_the_last_closed_pane_and_never_the_future() -> None:
    assert GRID.as_of_ms(10_999) == 10_000
    assert GRID.as_of_ms(11_000) == 11_000


def test_spans_that_touch_or_overlap_become_one() -> None:
    cover = covered(covered((), 0, 100), 100, 200)
    assert cover == ((0, 200),)
    assert covered(cover, 150, 400) == ((0, 400),)


def test_a_gap_between_spans_stays_a_gap_until_it_is_filled() -> None:
    cover = covered(covered((), 0, 100), 300, 400)
    assert cover == ((0, 100), (300, 400))
    assert covered_ms(cover) == 200
    assert covered(cover, 50, 350) == ((0, 400),)


def test_an_empty_span_covers_nothing() -> None:
    assert covered((), 5, 5) == ()


def test_a_window_that_is_no_whole_number_of_panes_and_too_short_is_refused_with_both_reasons() -> None:
    with pytest.raises(InvalidInputError) as refused:
        StreamsSettings(window_ms=4_500, pane_ms=1_000, grace_ms=2_000)
    assert len(refused.value.problems) == 2
    assert "streams.window_ms is 4500; must be a multiple of pane_ms 1000" in refused.value.problems
