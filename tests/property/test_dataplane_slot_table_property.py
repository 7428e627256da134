"""What holds of every slot table, whatever the weights."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane_inputs import CLUSTER, MODEL, route_weights, snapshot
from headrace.dataplane import Router
from headrace.dataplane.installation import Installation
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas, slot_table
from headrace.schemas.weights import PPM
from thoroughness import examples

SIZE = 1_021
"""A prime as any other: small, so that hypothesis can try many tables."""

SMALL = DataPlaneSettings(table_size=SIZE, large_table_size=2_039, large_above=32)
MANY = settings(max_examples=examples(100), deadline=None)

engine_ids = st.text("abcdefghij0123456789-./:@", min_size=1, max_size=12)
weights = st.one_of(st.just(0), st.integers(1, 1_000_000), st.integers(1, 20))
tables = st.dictionaries(engine_ids, weights, min_size=1, max_size=40)


def owners(ppm: dict[str, int], size: int = SIZE) -> list[str | None]:
    engines, owner = slot_table(ppm, size)
    return [engines[i] for i in owner] if engines else [None] * size


def total_variation(before: dict[str, int], after: dict[str, int]) -> float:
    a, b = sum(before.values()), sum(after.values())
    return sum(abs(before.get(e, 0) / a - after.get(e, 0) / b) for e in before.keys() | after.keys()) / 2


@MANY
@given(tables)
def test_every_slot_is_owned_and_every_engine_holds_its_quota(ppm: dict[str, int]) -> None:
    held = owners(ppm)
    total = sum(ppm.values())
    if total == 0:
        assert held == [None] * SIZE
        return
    assert None not in held
    for engine, weight in ppm.items():
        assert abs(held.count(engine) - SIZE * weight / total) < 1
        assert weight > 0 or engine not in held


@MANY
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_is_irrelevant(ppm: dict[str, int], shuffled: object) -> None:
    items = list(ppm.items())
    shuffled.shuffle(items)  # type: ignore[attr-defined] - hypothesis gives a random.Random
    assert owners(dict(items)) == owners(ppm)


@MANY
@given(tables, st.integers(1, 1_000))
def test_only_the_ratio_of_the_weights_counts(ppm: dict[str, int], factor: int) -> None:
    assert owners({engine: weight * factor for engine, weight in ppm.items()}) == owners(ppm)


@MANY
@given(tables, tables)
def test_restoring_the_weights_restores_the_table(first: dict[str, int], second: dict[str, int]) -> None:
    before = owners(first)
    owners(second)
    assert owners(first) == before


def as_ppm(weights: list[int]) -> dict[str, int]:
    return dict(zip((f"e{i}" for i in range(len(weights))), quotas(weights, PPM), strict=True))


histories = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any), min_size=1, max_size=4)
)


@MANY
@given(histories, st.data())
def test_a_data_plane_that_joins_late_agrees_on_every_slot(history: list[list[int]], data: st.DataObject) -> None:
    joins_at = data.draw(st.integers(0, len(history) - 1))
    early, late = Router(SMALL, CLUSTER), Router(replace(SMALL, source="late"), CLUSTER)
    for version, weights in enumerate(history):
        published = snapshot(route_weights(as_ppm(weights), version=version + 1))
        for router in (early, late) if version >= joins_at else (early,):
            assert isinstance(router.apply(published), Installation)
    one, other = (r.installation.tables[MODEL, "default"] for r in (early, late) if r.installation)
    assert [d.engine_id for d in one.by_slot] == [d.engine_id for d in other.by_slot]
    assert one.slots == other.slots


def moved(first: dict[str, int], second: dict[str, int], size: int) -> float:
    return sum(a != b for a, b in zip(owners(first, size), owners(second, size), strict=True)) / size


@MANY
@given(st.lists(engine_ids, min_size=2, max_size=20, unique=True), st.data())
def test_a_change_moves_at_least_the_total_variation_and_little_more(ids: list[str], data: st.DataObject) -> None:
    draw = st.lists(st.integers(0, 1_000), min_size=len(ids), max_size=len(ids)).filter(any)
    first, second = (dict(zip(ids, data.draw(draw), strict=True)) for _ in range(2))
    least, n, size = total_variation(first, second), len(ids), 4_093
    # Rendezvous moves at most 2 tv / (1 + tv) in the mean (weighted Jaccard); 0.03 is for the trim and for chance.
    assert least - 2 * n / size <= moved(first, second, size) <= 2 * least / (1 + least) + 0.03 + n / size


@given(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=50), st.integers(1, 20_000))
def test_quotas_sum_to_the_size_and_are_within_one_of_the_exact_share(ppm: list[int], size: int) -> None:
    due = quotas(ppm, size)
    if sum(ppm) == 0:
        assert due == [0] * len(ppm)
        return
    assert sum(due) == size
    assert all(abs(q - size * w / sum(ppm)) < 1 for q, w in zip(due, ppm, strict=True))
    by_weight = sorted(zip(ppm, due, strict=True))
    assert all(low <= high + (a == b) for (a, low), (b, high) in pairwise(by_weight))


def test_loads_stay_even_over_sessions() -> None:
    # 200,000 sessions over 8 equal engines: 25,000 each, with a standard deviation of sqrt(200000 x 1/8 x 7/8) = 148.
    rng = np.random.default_rng(11)
    engines, owner = slot_table({f"engine-{i}": 125_000 for i in range(8)}, 16_381)
    counts = np.bincount(owner[rng.integers(0, 2**63, 200_000) % 16_381], minlength=len(engines))
    assert np.abs(counts - 25_000).max() < 5 * 148
