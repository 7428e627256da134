"""Arrivals and round trips: real ones, at the rate asked for."""

import itertools

import numpy as np
import pytest

from headrace.infra.fleet.round_trips import RoundTrip, round_trip
from headrace.infra.fleet.trace import Trace, arrivals, azure_conversation, normalised
from headrace.schemas.errors import InvalidInputError

REQUESTS = 19_366


def test_dividing_by_the_local_mean_takes_out_a_slow_swing_and_keeps_a_fast_one() -> None:
    fast = np.tile([0.5, 1.5], 500)
    slow = np.repeat([1.0, 3.0], 500)
    out = normalised(fast * slow, 50)
    assert out.mean() == pytest.approx(1.0)
    # Away from the step the swing of 3 to 1 is gone, and 0.5 / 1.5 still alternate.
    assert out[250:252] == pytest.approx([0.5, 1.5], rel=0.05)
    assert out[750:752] == pytest.approx([0.5, 1.5], rel=0.05)


def test_the_loop_has_the_rate_the_burstiness_and_the_lengths_that_the_docs_name() -> None:
    trace = azure_conversation()
    assert len(trace.gaps) == REQUESTS
    assert trace.gaps.mean() == pytest.approx(1.0)
    assert trace.gaps.std() == pytest.approx(1.03, abs=0.02)
    assert trace.outputs.std() == pytest.approx(0.76, abs=0.02)
    # The 30-second swings that compression would turn into surges are gone: 200 requests take 200 units, within 10 %.
    blocks = trace.gaps[: REQUESTS - REQUESTS % 200].reshape(-1, 200).sum(axis=1)
    assert blocks.std() / blocks.mean() < 0.1


def test_a_whole_loop_keeps_the_mean_lengths_and_gives_sessions_of_five_requests() -> None:
    loop = list(
        itertools.islice(arrivals(azure_conversation(), "c", 0.5, (204.0, 62.4), np.random.default_rng(1)), REQUESTS)
    )
    assert np.mean([a.output_tokens for a in loop]) == pytest.approx(62.4, rel=0.01)
    assert np.mean([a.input_tokens for a in loop]) == pytest.approx(204.0, rel=0.01)
    assert min(a.output_tokens for a in loop) >= 1
    assert REQUESTS / len({a.session for a in loop}) == pytest.approx(5.0, rel=0.03)


def test_clusters_start_at_their_own_place_of_the_loop_and_go_round() -> None:
    trace = Trace(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), np.ones(4))
    gaps = [a.gap for a in itertools.islice(arrivals(trace, "c", 0.5, (1.0, 1.0), np.random.default_rng(1)), 6)]
    assert gaps == [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]


def test_half_of_the_round_trips_are_above_the_p50_and_a_tenth_above_the_p90() -> None:
    link = RoundTrip(0.100, 0.120, np.random.default_rng(1))
    drawn = np.array([link.draw_s() for _ in range(20_000)])
    assert np.median(drawn) == pytest.approx(0.100, rel=0.005)
    assert np.quantile(drawn, 0.9) == pytest.approx(0.120, rel=0.005)


def test_round_trips_are_those_measured_in_their_direction() -> None:
    rng = np.random.default_rng(1)
    assert round_trip("us-east-1", "us-east-2", rng).median_s == pytest.approx(0.015068)
    assert round_trip("us-east-2", "us-east-1", rng).median_s == pytest.approx(0.016476)


def test_an_unmeasured_region_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'mars-1'"):
        round_trip("us-east-1", "mars-1", np.random.default_rng(1))
