"""What holds of shedding and of the scan, whatever the weights and the session."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import Decision, DecisionReason, Outcome, Router
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.settings import DataPlaneSettings

SMALL = DataPlaneSettings(table_size=101, large_table_size=1_021)
ratios = st.floats(0, 1)
weights = st.lists(st.integers(0, 1_000), min_size=1, max_size=12)


def is_shed(key: bytes, ratio: float) -> bool:
    router = Router(SMALL, CLUSTER)
    router.apply(snapshot(route_weights(shares(a=1, b=1), shed_ratio=ratio)))
    return router.route(MODEL, key=key, now_ms=NOW_MS).outcome is Outcome.SHED


def candidates(of: list[int]) -> Candidates:
    decisions = [Decision(Outcome.ROUTED, f"engine-{i}", None, DecisionReason.SCAN) for i in range(len(of))]
    return Candidates(decisions, of)


@given(st.binary(min_size=1), ratios, ratios)
def test_a_session_shed_at_a_ratio_is_shed_at_every_higher_one(key: bytes, one: float, other: float) -> None:
    assert is_shed(key, min(one, other)) <= is_shed(key, max(one, other))


@given(st.binary(min_size=1))
def test_nothing_is_shed_at_zero_and_everything_at_one(key: bytes) -> None:
    assert (is_shed(key, 0.0), is_shed(key, 1.0)) == (False, True)


@given(weights, st.integers(0, 2**64 - 1), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_the_scan_gives_an_allowed_engine_with_a_weight_or_none(
    of: list[int], point: int, down: set[int], tried: set[int]
) -> None:
    picked = candidates(of).pick(point, {f"engine-{i}" for i in down | tried}, DecisionReason.SCAN)
    usable = {f"engine-{i}" for i, w in enumerate(of) if w > 0 and i not in down and i not in tried}
    assert (picked is None) == (not usable)
    assert picked is None or picked.engine_id in usable


@given(weights, st.integers(0, 2**64 - 1), st.integers(0, 11))
def test_taking_an_engine_out_of_the_scan_moves_only_its_own_sessions(of: list[int], point: int, victim: int) -> None:
    all_up = candidates(of).pick(point, (), DecisionReason.SCAN)
    without = candidates(of).pick(point, (f"engine-{victim}",), DecisionReason.SCAN)
    if all_up is not None and all_up.engine_id != f"engine-{victim}":
        assert without is not None
        assert without.engine_id == all_up.engine_id


def test_the_scan_shares_sessions_by_weight() -> None:
    # 20,000 points at 3/4: 15,000 expected, standard deviation sqrt(20000 x 3/4 x 1/4) = 61.
    three_to_one = candidates([3, 1])
    picked = [three_to_one.pick(i * 0x9E37_79B9_7F4A_7C15 % 2**64, (), DecisionReason.SCAN) for i in range(20_000)]
    first = sum(d is not None and d.engine_id == "engine-0" for d in picked)
    assert abs(first - 15_000) < 5 * 61
