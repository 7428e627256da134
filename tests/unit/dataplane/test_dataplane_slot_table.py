"""The slot table by example; tests/property holds what is true of every slot table."""

import math
from collections import Counter

import numpy as np
import pytest
import xxhash

from headrace.dataplane.slot_table import NOBODY, quotas, slot_table

N = 16_381


def owners(ppm: dict[str, int], size: int = N) -> list[str]:
    engines, owner = slot_table(ppm, size)
    return [engines[i] for i in owner]


def naive_race(ppm: dict[str, int], size: int) -> list[str]:
    """The definition, slot by slot: every engine's every claim, the earliest wins; no quotas."""
    best = [(math.inf, "")] * size
    for engine in sorted(ppm):
        h = xxhash.xxh3_128_intdigest(engine.encode())
        step, start = 1 + (h >> 64) % (size - 1), (h & (2**64 - 1)) % size
        for k in range(size):
            slot = (step * k + start) % size
            best[slot] = min(best[slot], (-math.log1p(-(k + 0.5) / size) / ppm[engine], engine))
    return [engine for _, engine in best]


def test_quotas_are_the_largest_remainders() -> None:
    # 7 slots in the ratio 1 : 1 : 1 are 2.33 each: the first of the equal remainders gets the seventh.
    assert quotas([1, 1, 1], 7) == [3, 2, 2]
    # 10 slots in the ratio 55 : 30 : 15 are 5.5, 3.0 and 1.5: one slot is left, and the first 0.5 gets it.
    assert quotas([550_000, 300_000, 150_000], 10) == [6, 3, 1]
    assert quotas([0, 0], 7) == [0, 0]


def test_an_engine_holds_the_slots_it_is_due() -> None:
    # 16381 / 4 = 4095.25, so three quarters are 12285.75 and round up.
    assert Counter(owners({"a": 750_000, "b": 250_000})) == {"a": 12_286, "b": 4_095}


def test_one_engine_owns_every_slot() -> None:
    assert set(owners({"a": 5, "b": 0})) == {"a"}


def test_no_weight_gives_no_table() -> None:
    for ppm in ({}, {"a": 0}):
        engines, owner = slot_table(ppm, N)
        assert engines == ()
        assert owner.size == 0


def test_a_weight_below_half_a_slot_may_get_none_and_nothing_breaks() -> None:
    assert set(owners({"a": 999_999, "b": 1}, 101)) == {"a"}


@pytest.mark.parametrize("ppm", [{"a": 1, "b": 1}, {"a": 6, "b": 3, "c": 1}, {f"e{i}": i for i in range(1, 15)}])
def test_it_is_the_race_of_its_definition_but_for_the_trim_to_quotas(ppm: dict[str, int]) -> None:
    size = 4_099
    raced = naive_race(ppm, size)
    trimmed = owners(ppm, size)
    surplus = sum(
        max(0, count - quotas([ppm[e] for e in sorted(ppm)], size)[sorted(ppm).index(engine)])
        for engine, count in Counter(raced).items()
    )
    assert sum(a != b for a, b in zip(raced, trimmed, strict=True)) == surplus
    assert surplus < 0.05 * size


def test_an_engine_that_leaves_gives_its_slots_to_the_others_who_keep_theirs() -> None:
    ppm = {f"engine-{i}": 100_000 for i in range(10)}
    before = owners(ppm)
    after = owners({engine: weight for engine, weight in ppm.items() if engine != "engine-3"})
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    due = before.count("engine-3")
    assert due == 1_638
    assert due <= moved <= 1.15 * due


def test_no_slot_is_left_to_nobody_with_a_thousand_engines() -> None:
    rng = np.random.default_rng(7)
    ppm = {f"engine-{i}": int(w) for i, w in enumerate(rng.integers(0, 2_000, 1_000))}
    engines, owner = slot_table(ppm, 65_537)
    assert NOBODY not in owner
    assert np.bincount(owner, minlength=len(engines)).tolist() == quotas([ppm[e] for e in engines], 65_537)


def test_the_table_is_the_same_on_every_machine() -> None:
    # Replicas of one cluster agree without talking, so these bytes may never change within a release of the table.
    engines, owner = slot_table({"engine-a": 500_000, "engine-b": 300_000, "engine-c": 200_000}, N)
    assert engines == ("engine-a", "engine-b", "engine-c")
    assert xxhash.xxh3_64_hexdigest(owner.astype("<u2").tobytes()) == "90b453f494be9900"
