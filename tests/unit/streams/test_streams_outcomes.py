"""How requests ended, from signals to the state: by pane, by vantage, each of them once."""

from dataclasses import replace

import pytest

from headrace.schemas.codec import decode, encode, must
from headrace.schemas.series import SeriesField, SeriesKind, SeriesOver, SeriesPart, SeriesReading
from headrace.schemas.signals import EngineSignals, Outcomes, Vantage
from headrace.schemas.state import EngineState, Invalid, OutcomePane
from headrace.streams.core.engine import EngineAccumulator, fold_engine
from headrace.streams.settings import StreamsSettings

START_MS = 1_700_000_000_000
SETTINGS = StreamsSettings()


def told(
    end_s: float, succeeded: int, failed: int, vantage: Vantage = Vantage.ENGINE, model: str = "m"
) -> EngineSignals:
    end = START_MS + round(1000 * end_s)
    return EngineSignals(
        "e1", "e1/pod", vantage, end - 1000, end, (), None, outcomes=(Outcomes(model, succeeded, failed),)
    )


def folded(*signals: EngineSignals) -> EngineState:
    """Fold in one go, and again from bytes to bytes after every message: the same to the last byte."""
    at_once = EngineAccumulator("e1", SETTINGS)
    state: EngineState | None = None
    for offset, each in enumerate(signals):
        at_once.apply(each, offset, each.period_end_ms)
        state = fold_engine(state, each, offset, each.period_end_ms, SETTINGS)
        state = must(decode(EngineState, encode(state)))
    assert state is not None
    assert encode(state) == encode(at_once.state())
    return state


def panes(state: EngineState, vantage: Vantage = Vantage.ENGINE) -> list[tuple[float, int, int, bool]]:
    found = [each for each in state.outcomes or () if each.vantage is vantage]
    return [
        ((pane.end_ms - START_MS) / 1000, pane.succeeded, pane.failed, pane.is_final)
        for each in found
        for pane in each.panes
    ]


def test_a_count_stands_in_the_pane_where_its_period_ends_and_is_final_after_the_grace() -> None:
    state = folded(told(1, 9, 1), told(2, 8, 2), told(3, 10, 0), told(3.5, 4, 0))
    #  t (s)   1      2      3      4          grace two panes behind the newest, which ends at 4
    assert panes(state) == [(1, 9, 1, True), (2, 8, 2, False), (3, 10, 0, False), (4, 4, 0, False)]


def test_where_nobody_counted_nothing_is_said_and_zero_is_a_count() -> None:
    assert folded(replace(told(1, 0, 0), outcomes=None)).outcomes is None
    assert panes(folded(told(1, 0, 0))) == [(1, 0, 0, False)]


def test_a_pane_leaves_the_state_with_the_window() -> None:
    state = folded(*[told(second, 1, 0) for second in range(1, 16)])
    assert [end for end, *_ in panes(state)] == list(range(6, 16))


def test_models_are_told_apart_and_sorted() -> None:
    state = folded(told(1, 5, 0, model="b"), told(1, 3, 1, model="a"))
    assert [(each.model, each.panes[0].succeeded) for each in state.outcomes or ()] == [("a", 3), ("b", 5)]


def test_a_gateways_outcomes_count_apart_and_do_not_keep_a_silent_engine_alive() -> None:
    state = folded(told(1, 9, 0), told(1.5, 7, 2, Vantage.GATEWAY), told(30, 0, 5, Vantage.GATEWAY))
    assert state.last_signal_ms == START_MS + 1000
    assert panes(state) == [(1, 9, 0, False)]
    assert panes(state, Vantage.GATEWAY) == [(30, 0, 5, False)]


def test_an_engine_that_only_gateways_speak_of_has_outcomes_and_still_no_valid_state() -> None:
    state = folded(told(1, 0, 5, Vantage.GATEWAY))
    assert (state.invalid, panes(state, Vantage.GATEWAY)) == (Invalid.NO_SIGNAL_YET, [(1, 0, 5, False)])


def test_a_gateway_that_comes_later_than_the_grace_is_not_counted_since_its_pane_was_final() -> None:
    first, late = told(10, 1, 0, Vantage.GATEWAY), told(7, 1, 0, Vantage.GATEWAY)
    assert panes(folded(first, late), Vantage.GATEWAY) == [(10, 1, 0, False)]
    in_time = told(8, 1, 0, Vantage.GATEWAY)
    assert panes(folded(first, in_time), Vantage.GATEWAY) == [(8, 1, 0, False), (10, 1, 0, False)]


def test_a_message_that_is_delivered_again_counts_once() -> None:
    state = fold_engine(None, told(1, 9, 1), 5, START_MS, SETTINGS)
    for vantage in (Vantage.ENGINE, Vantage.GATEWAY):
        again = fold_engine(state, told(1, 9, 1, vantage), 5, START_MS, SETTINGS)
        assert again.outcomes == state.outcomes


def reading(field: SeriesField, at_s: float, value: float) -> SeriesReading:
    series = 1 if field is SeriesField.SUCCEEDED else 2
    return SeriesReading(
        series, series, 0, field, SeriesKind.CUMULATIVE, SeriesPart.WHOLE, "m", "i", "", SeriesOver.SUM,
        SeriesOver.SUM, START_MS + round(1000 * at_s), None, value, None, None, None,
    )  # fmt: skip


def scraped(at_s: float, succeeded: float, failed: float) -> EngineSignals:
    at = START_MS + round(1000 * at_s)
    series = (reading(SeriesField.SUCCEEDED, at_s, succeeded), reading(SeriesField.FAILED, at_s, failed))
    return EngineSignals("e1", "bridge", Vantage.ENGINE, at, at, (), None, series)


def test_counters_become_counts_by_difference_and_the_first_reading_is_a_baseline() -> None:
    assert folded(scraped(1, 100, 7)).outcomes is None
    state = folded(scraped(1, 100, 7), scraped(3, 118, 9), scraped(5, 118, 9), scraped(7, 128, 9))
    assert panes(state) == [(3, 18, 2, True), (5, 0, 0, False), (7, 10, 0, False)]


def test_a_counter_that_begins_anew_counts_from_zero() -> None:
    state = folded(scraped(1, 100, 7), scraped(3, 4, 1))
    assert panes(state) == [(3, 4, 1, False)]


def test_panes_of_another_length_are_not_taken_up() -> None:
    state = fold_engine(None, told(1, 9, 1), 0, START_MS, SETTINGS)
    other = replace(SETTINGS, pane_ms=500)
    assert EngineAccumulator.resume(state, other).state().outcomes is None


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_within_the_grace_the_order_does_not_matter(order: tuple[int, ...]) -> None:
    signals = [told(2.2, 1, 0), told(3.2, 2, 1), told(4.2, 3, 0)]
    state = folded(told(1, 0, 0), *[signals[n] for n in order])
    assert [pane[:3] for pane in panes(state)][-3:] == [(3, 1, 0), (4, 2, 1), (5, 3, 0)]
    assert isinstance((state.outcomes or ())[0].panes[0], OutcomePane)
