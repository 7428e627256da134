"""What counts as a warm cache in the closed-loop experiments: by the order in which requests arrived."""

from stability import Lengths, Served, hits


def served(number: int, session: str, engine_id: str | None, arrived_s: float = 1.0) -> Served:
    return Served(arrived_s, number, session.encode(), engine_id, None if engine_id is None else 0.5)


def test_a_request_is_a_hit_where_it_went_to_the_engine_of_the_one_before_it() -> None:
    assert hits([served(1, "s", "a"), served(2, "s", "a"), served(3, "s", "b"), served(4, "t", "b")], 0.0, 9.0) == (
        2,
        1,
    )


def test_answers_that_come_out_of_order_move_nobody() -> None:
    assert hits([served(2, "s", "b"), served(1, "s", "a"), served(3, "s", "b")], 0.0, 9.0) == (2, 1)


def test_a_request_that_was_refused_warms_nothing_and_cools_nothing() -> None:
    assert hits([served(1, "s", "a"), served(2, "s", None), served(3, "s", "a")], 0.0, 9.0) == (1, 1)


def test_only_arrivals_of_the_span_count_and_what_came_before_is_known() -> None:
    assert hits([served(1, "s", "a", 1.0), served(2, "s", "a", 2.0), served(3, "s", "b", 3.0)], 2.0, 3.0) == (1, 1)


def test_phases_follow_each_other_and_end_before_their_answers_come_in_the_next() -> None:
    lengths = Lengths(settle_s=30.0, quiet_s=40.0, failure_s=50.0, shift_s=60.0)
    assert [lengths.span(phase) for phase in ("quiet", "failure", "shift")] == [
        (30.0, 64.0),
        (70.0, 114.0),
        (120.0, 174.0),
    ]
