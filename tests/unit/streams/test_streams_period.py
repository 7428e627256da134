"""What an engine's state says of its reports: how long the newest period was, and how much of the window is covered."""

from headrace.schemas.signals import EngineSignals, Vantage
from headrace.schemas.state import EngineState
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()


def folded(*periods: tuple[int, int]) -> EngineState:
    accumulator = EngineAccumulator("e1", SETTINGS)
    for offset, (start_ms, end_ms) in enumerate(periods):
        accumulator.apply(EngineSignals("e1", "s", Vantage.ENGINE, start_ms, end_ms, (), None), offset, end_ms)
    return accumulator.state()


def test_the_period_is_the_newest_ones_and_an_older_report_does_not_change_it() -> None:
    assert folded((0, 1_000), (1_000, 3_000)).period_ms == 2_000
    assert folded((0, 1_000), (1_000, 3_000), (2_000, 2_500)).period_ms == 2_000
    assert folded().period_ms is None


def test_covered_is_in_milliseconds_overlaps_once_and_gaps_not_at_all() -> None:
    assert folded((0, 1_000), (500, 1_500), (3_000, 4_000)).covered_ms == 2_500


def test_a_fold_that_is_taken_up_again_knows_the_period() -> None:
    state = folded((0, 1_000), (1_000, 3_000))
    assert EngineAccumulator.resume(state, SETTINGS).state() == state
