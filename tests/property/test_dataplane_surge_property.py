"""What is said of how often each engine is picked, whoever is left out and whatever overflows."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane_inputs import route_weights
from headrace.dataplane.avoidance import Avoidance
from headrace.dataplane.detour import LeftOut, detour
from headrace.dataplane.overflow import overflow
from headrace.dataplane.route_table import build_table
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas
from headrace.schemas.weights import PPM, FallbackTarget

ENGINES = [f"engine-{letter}" for letter in "abcdef"]
SETTINGS = DataPlaneSettings(table_size=1_021, large_table_size=2_039, large_above=16)
POINTS = [i * 0x9E37_79B9_7F4A_7C15 % 2**64 for i in range(4_000)]
shares = st.lists(st.integers(0, 5), min_size=len(ENGINES), max_size=len(ENGINES))
rooms = st.lists(st.sampled_from([0.0, 0.2, 0.6, 3.0]), min_size=len(ENGINES), max_size=len(ENGINES))
some = st.frozensets(st.sampled_from(ENGINES), max_size=2)


@given(shares.filter(any), shares, rooms, st.floats(1.0, 2.0), some, some)
def test_an_engine_is_picked_as_often_as_is_said_whatever_overflows(
    weights: list[int],
    failover: list[int],
    headroom: list[float],
    times: float,
    down: frozenset[str],
    tried: frozenset[str],
) -> None:
    made = route_weights(dict(zip(ENGINES, quotas(weights, PPM), strict=True)))
    told = dict(zip(ENGINES, headroom, strict=True))
    brought = tuple(FallbackTarget(e, None, w) for e, w in zip(ENGINES, quotas(failover, PPM), strict=True) if w)
    table = build_table(
        replace(
            made,
            targets=tuple(replace(t, headroom=told[t.engine_id], failover_kept=1.0) for t in made.targets),
            failover=brought,
        ),
        SETTINGS,
    )
    view = Avoidance(table, 0, 0, 1, down, down, down, (), panic=False, overflow=overflow(table, times))
    out = LeftOut.of(view, frozenset(), frozenset(), tried)
    decisions = [detour(table, point, out, 8, None) for point in POINTS]
    if any(d.engine_id is None or d.engine_id in down | tried for d in decisions):
        return
    counts = Counter(d.engine_id for d in decisions)
    said = {d.engine_id: d.propensity or 0.0 for d in decisions}
    assert sum(said.values()) <= 1.02
    for engine, count in counts.items():
        assert count / len(POINTS) == pytest.approx(said[engine], abs=0.05)
