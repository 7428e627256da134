"""New conversations are shed before established ones, whole, and as much in all as the snapshot says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, shares, snapshot
from headrace.dataplane import Outcome, Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.shedding import Mix, split

KEYS = [f"session-{i}" for i in range(2_000)]
ratios = st.floats(0, 1)


def test_established_conversations_are_shed_only_when_no_new_ones_are_left() -> None:
    # Half of the requests are new: 30 % of all are 60 % of them; 75 % of all are all of them and half of the others.
    assert split(0.3, 0.5) == (pytest.approx(0.6), 0.0)
    assert split(0.75, 0.5) == (1.0, pytest.approx(0.5))


def test_nothing_is_shed_at_zero_and_everything_at_one_whatever_the_mix() -> None:
    for established in (0.0, 0.3, 1.0):
        assert split(0.0, established) == (0.0, 0.0)
        assert split(1.0, established) == (1.0, 1.0)


def test_a_route_with_one_kind_of_conversation_sheds_the_ratio_of_it() -> None:
    assert split(0.25, 0.0) == (0.25, 0.0)
    assert split(0.25, 1.0) == (1.0, 0.25)


@given(ratios, ratios, ratios)
def test_both_shares_grow_with_the_ratio_and_new_ones_go_first(one: float, other: float, established: float) -> None:
    low, high = split(min(one, other), established), split(max(one, other), established)
    assert low[0] <= high[0]
    assert low[1] <= high[1]
    assert low[1] <= low[0] + 1e-9


@given(ratios, st.floats(0.01, 0.99))
def test_together_they_are_the_ratio(ratio: float, established: float) -> None:
    new, old = split(ratio, established)
    assert (1 - established) * new + established * old == pytest.approx(ratio, abs=1e-9)


def test_the_mix_is_an_average_that_follows_the_last_two_thousand() -> None:
    assert Mix().after(0, 0) == Mix()
    assert Mix().after(30, 10) == Mix(0.25, 40)
    assert Mix(0.25, 40).after(0, 40) == Mix(0.625, 80)
    assert Mix(0.0, 2_000).after(0, 1_000) == Mix(0.5, 2_000)
    assert Mix(0.0, 2_000).after(0, 9_000) == Mix(1.0, 9_000)


def kept(made: Router, *, established: bool | None) -> set[str]:
    decided = {key: made.route(MODEL, key=key, established=established, now_ms=NOW_MS).outcome for key in KEYS}
    return {key for key, outcome in decided.items() if outcome is Outcome.ROUTED}


def shedding(ratio: float, version: int = 1) -> object:
    return snapshot(route_weights(shares(a=1, b=1), shed_ratio=ratio, version=version))


def test_a_conversation_that_was_let_in_is_kept() -> None:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(shedding(0.3))
    let_in, under_way, unknown = (kept(made, established=e) for e in (False, True, None))
    assert let_in < unknown < under_way
    # Before any request half of them are taken to be new: 60 % of these, none of the others.
    assert under_way == set(KEYS)
    assert abs(len(let_in) / len(KEYS) - 0.4) < 5 * 0.011
    assert abs(len(unknown) / len(KEYS) - 0.7) < 5 * 0.011


def test_the_mix_that_was_seen_decides_from_the_next_snapshot_on() -> None:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(shedding(0.3))
    before = kept(made, established=False)
    for key in KEYS[:1_000]:
        made.route(MODEL, key=key, established=True, now_ms=NOW_MS)
    assert kept(made, established=False) == before
    made.apply(shedding(0.3, version=2))
    # 4,000 new ones and 1,000 established ones were seen: 0.3 of all is 0.3 / 0.8 of the new ones.
    assert abs(len(kept(made, established=False)) / len(KEYS) - (1 - 0.3 / 0.8)) < 5 * 0.011
    assert kept(made, established=True) == set(KEYS)


def test_tiers_come_before_standing() -> None:
    made = Router(DataPlaneSettings(), CLUSTER)
    made.apply(snapshot(route_weights(shares(a=1, b=1), shed_ratio=0.3, tier=1)))
    less, more = (made.route(MODEL, key="x", tier=t, established=e, now_ms=NOW_MS) for t, e in ((2, True), (0, False)))
    assert (less.outcome, more.outcome) == (Outcome.SHED, Outcome.ROUTED)
