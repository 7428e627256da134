import pytest

from headrace.streams.core.level import Bounds, Level, Pane, begun, last_step, moved

MEMORY_S = 30.0


def panes(*rates: float, from_s: int = 0) -> list[Pane]:
    return [Pane(rate, 1.0, 1000 * (from_s + i)) for i, rate in enumerate(rates, start=1)]


def level_of(seen: list[Pane], window: int = 10, share: float = 0.05, sigmas: float = 4.0) -> Level:
    level = begun(seen[0])
    for i, pane in enumerate(seen):
        level = moved(level, pane, MEMORY_S)
        newest = list(reversed(seen[max(0, i + 1 - window) : i + 1]))
        step = last_step(level, newest, Bounds(MEMORY_S, share, sigmas))
        level = level if step is None else step.after
    return level


def test_a_level_is_the_mean_of_what_was_seen_up_to_its_memory() -> None:
    assert level_of(panes(90, 110, 100)) == Level(100.0, 3.0, 3000)


def test_beyond_its_memory_a_level_forgets_by_a_thirtieth_a_second() -> None:
    steady = panes(*[100.0] * 60)
    level = level_of(steady)
    assert moved(level, Pane(103.0, 1.0, 61_000), MEMORY_S).rps == pytest.approx(100.1)


def test_a_pane_that_is_not_newer_changes_nothing() -> None:
    level = Level(100.0, 5.0, 5000)
    assert moved(level, Pane(7.0, 1.0, 5000), MEMORY_S) is level


def test_after_a_silence_as_long_as_the_memory_one_pane_is_all_that_is_known() -> None:
    level = level_of(panes(*[100.0] * 60))
    assert moved(level, Pane(40.0, 1.0, 60_000 + 31_000), MEMORY_S) == Level(40.0, 1.0, 91_000)


def test_a_step_of_a_third_is_taken_whole_after_two_seconds_and_then_averaged_from_there() -> None:
    # Four deviations of two seconds of 150 against thirty of 100 are 4 sqrt(150 (1/2 + 1/30)) = 36
    seen = panes(*[100.0] * 60, 150.0, 150.0)
    assert level_of(seen[:-1]).rps < 103.0
    assert level_of(seen) == Level(150.0, 2.0, 62_000)
    assert level_of([*seen, *panes(144.0, from_s=62)]) == Level(148.0, 3.0, 63_000)


def test_of_one_second_alone_half_counts_so_that_a_burst_is_no_step() -> None:
    # Alone it would be one, 60 being above 4 sqrt(160 (1 + 1/30)) = 51; with the second before it, 30 is below 33
    assert level_of(panes(*[100.0] * 60, 160.0)).rps == pytest.approx(100 + 60 / 30)


def test_what_chance_explains_is_no_step() -> None:
    # Two seconds of 100 are within 4 sqrt(128 (1/2 + 1/30)) = 33 of it
    assert level_of(panes(*[100.0] * 60, 128.0, 128.0)).rps < 104.0


def test_a_fall_is_looked_at_over_five_seconds_so_that_a_pause_is_none() -> None:
    # 26.8 in the mean of the five is within 4 sqrt(36 (1/5 + 1/30)) = 11.6 of 36.
    assert level_of(panes(*[36.0] * 40, 13.0, 13.0)).rps > 34.0
    assert level_of(panes(*[36.0] * 40, 13.0, 13.0, 36.0)).evidence_s == 43.0
    assert level_of(panes(*[90.0] * 40, *[45.0] * 5)) == Level(45.0, 5.0, 45_000)
    assert level_of(panes(*[90.0] * 40, *[0.0] * 5)) == Level(0.0, 5.0, 45_000)


def test_a_change_below_the_share_is_no_step_however_sure_it_is() -> None:
    seen = panes(*[1e6] * 60, *[1.04e6] * 5)
    assert level_of(seen).evidence_s == 65.0
    assert level_of(seen, share=0.03).rps == pytest.approx(1.04e6)
