"""The quick look at a signal says yes only where the long one finds no problem."""

import math

from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.check_signals import (
    MAX_COUNT,
    MAX_IN_ENGINE,
    MAX_PERIOD_MS,
    MAX_REPLICAS,
    MAX_SECONDS,
    _engine_problems,  # pyright: ignore[reportPrivateUsage] - the two are held against each other
    _is_sound,  # pyright: ignore[reportPrivateUsage] - as above
    check_signal,
)
from headrace.schemas.histogram import BUCKETS, MAX_INDEX, MIN_INDEX
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Vantage

names = st.sampled_from(["engine-1", "m", "", "a b", "x" * 201])
seconds = st.sampled_from([0.0, 0.5, 3.0, MAX_SECONDS, MAX_SECONDS * 2, -1.0, math.nan, math.inf, -0.0])
counts = st.sampled_from([0, 1, 2, 3, 5, MAX_COUNT, MAX_COUNT + 1, -1])
buckets = st.one_of(
    st.lists(st.sampled_from([0, 1, 2, -1]), max_size=3).map(tuple),
    st.sampled_from([(0,) * (BUCKETS - 1) + (1,), (0,) * BUCKETS + (1,)]),
)
distributions = st.builds(
    Distribution,
    names,
    st.sampled_from(list(Metric)),
    counts,
    seconds,
    st.none() | seconds,
    st.none() | seconds,
    st.sampled_from([0, 1, 3, -1]),
    st.sampled_from([0, MIN_INDEX, MIN_INDEX - 1, MAX_INDEX, MAX_INDEX + 1]),
    buckets,
)
replicas = st.sampled_from([None, 0, 2, MAX_REPLICAS, MAX_REPLICAS + 1, -1])
loads = st.sampled_from([None, 0.0, 0.5, 2.0, MAX_IN_ENGINE, MAX_IN_ENGINE * 2, -1.0, math.nan, math.inf])
statuses = st.builds(EngineStatus, st.just(Health.HEALTHY), replicas, replicas, replicas, loads, loads, loads)
instants = st.sampled_from([-1, 0, 1_000, 2_000, MAX_PERIOD_MS + 1_000, MAX_PERIOD_MS + 1_001, 10**12])


@st.composite
def signals(draw: st.DrawFn) -> EngineSignals:
    found = tuple(draw(st.lists(distributions, max_size=2)))
    status = draw(st.none() | statuses)
    return EngineSignals(draw(names), "s", Vantage.ENGINE, draw(instants), draw(instants), found, status)


@given(signals())
def test_what_the_quick_look_lets_pass_has_no_problem(signal: EngineSignals) -> None:
    if _is_sound(signal, 1_000_000):
        assert not list(_engine_problems(signal, 1_000_000))


@given(st.integers(1, 40), st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 3))
def test_a_usual_signal_passes_the_quick_look(first: int, found: list[int], zeros: int) -> None:
    count = zeros + sum(found)
    low, high = (0.1, 0.9) if count else (None, None)
    one = Distribution("m", Metric.TTFT, count, 0.5 * count, low, high, zeros, first, tuple(found))
    signal = EngineSignals("e", "s", Vantage.ENGINE, 0, 1_000, (one,), None)
    assert _is_sound(signal, 1_000) == (count > 0), "no traffic takes the long way"
    assert check_signal(signal, 1_000) is None
