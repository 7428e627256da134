"""Where the rate no longer rises: capacity, and the stages that only queue."""

import pytest

from headrace.solver.core.profile.load_test import LoadStage, closed_loop
from headrace.solver.core.profile.wall import find_wall
from load_tests import batch_engine, open_stage


def closed(concurrency: float, rate: float) -> LoadStage:
    return closed_loop(concurrency, 10.0, 0.1, concurrency / rate)


def test_an_open_loop_stage_that_completed_less_than_it_was_offered_is_saturated() -> None:
    stages = [open_stage(10, 9.9, 0.1, 0.5), open_stage(100, 96.9, 0.2, 0.8), open_stage(60, 58.3, 0.1, 0.6)]
    wall = find_wall(stages)
    assert [s.offered_rps for s in wall.steady] == [10, 60]
    assert [s.offered_rps for s in wall.saturated] == [100]
    assert wall.reached


def test_the_wall_is_the_median_of_what_saturated_stages_completed() -> None:
    beyond = [open_stage(offered, done, 3.0, 4.0) for offered, done in ((120, 101.2), (150, 101.5), (180, 103.1))]
    assert find_wall([open_stage(90, 89.5, 0.1, 0.5), *beyond]).capacity_rps == 101.5
    # A steady stage that did more than the saturated ones: the engine can do that.
    assert find_wall([open_stage(102, 102, 0.1, 0.5), *beyond]).capacity_rps == 102


def test_a_short_test_that_lost_completions_to_its_end_is_steady_while_the_rate_still_rises() -> None:
    # 200 requests a stage, each of some 3 s: 8 a second take 25 s, and 3 s more until the last is done.
    rates = ((1, 0.98), (4, 3.8), (8, 7.1), (16, 13.9), (24, 21.0), (32, 23.1), (48, 23.3), (64, 22.9))
    wall = find_wall([open_stage(offered, done, 0.1, 3.0) for offered, done in rates])
    assert [s.offered_rps for s in wall.steady] == [1, 4, 8, 16, 24]
    assert [s.offered_rps for s in wall.saturated] == [32, 48, 64]
    assert wall.capacity_rps == 23.1


def test_a_stage_that_queued_while_the_rate_still_rose_is_neither_steady_nor_the_wall() -> None:
    wall = find_wall([open_stage(offered, done, 0.1, 3.0) for offered, done in ((10, 10), (50, 30), (200, 40))])
    assert [s.offered_rps for s in wall.steady] == [10]
    assert wall.capacity_rps == 40


def test_without_a_saturated_stage_the_capacity_is_the_highest_rate_and_the_wall_was_not_reached() -> None:
    wall = find_wall([open_stage(10, 10, 0.1, 0.5), open_stage(50, 50, 0.2, 0.8)])
    assert (wall.capacity_rps, wall.reached) == (50, False)


def test_a_closed_loop_is_saturated_from_where_doubling_adds_less_than_seven_percent() -> None:
    # 8 -> 16 adds 60 %, 16 -> 32 adds 25 %, 32 -> 64 adds 5 %, 64 -> 128 nothing.
    wall = find_wall([closed(8, 5.0), closed(16, 8.0), closed(32, 10.0), closed(64, 10.5), closed(128, 10.5)])
    assert [s.concurrency for s in wall.steady] == [8, 16, 32]
    assert [s.concurrency for s in wall.saturated] == [64, 128]
    assert wall.capacity_rps == 10.5


def test_a_dip_on_the_way_up_is_no_wall() -> None:
    wall = find_wall([closed(8, 5.0), closed(16, 4.9), closed(32, 9.0)])
    assert not wall.reached
    assert wall.capacity_rps == 9.0


def test_a_rate_that_falls_behind_the_wall_leaves_the_capacity_at_the_highest_steady_rate() -> None:
    wall = find_wall([closed(8, 5.0), closed(16, 9.0), closed(32, 8.0), closed(64, 7.0)])
    assert wall.capacity_rps == 9.0
    assert len(wall.saturated) == 2


def test_repeats_of_one_concurrency_are_judged_by_their_median() -> None:
    wall = find_wall([closed(8, 5.0), closed(16, 8.9), closed(16, 9.1), closed(32, 9.0), closed(32, 9.2)])
    assert [s.concurrency for s in wall.saturated] == [32, 32]
    assert wall.capacity_rps == pytest.approx(9.1)


def test_littles_law_puts_a_closed_loop_on_the_axis_of_rates() -> None:
    wall = find_wall(batch_engine(10, 30, 90))
    # 10 / 2 s, 30 / 4 s, 90 / 10 s.
    assert [s.completed_rps for s in wall.steady] == pytest.approx([5.0, 7.5, 9.0])


def test_both_loops_in_one_file_are_judged_each_by_its_own_rule() -> None:
    wall = find_wall([open_stage(5, 5, 0.1, 0.5), open_stage(20, 10, 3, 4), closed(8, 6.0), closed(16, 6.1)])
    assert [s.completed_rps for s in wall.steady] == pytest.approx([5, 6])
    assert [s.completed_rps for s in wall.saturated] == pytest.approx([10, 6.1])
