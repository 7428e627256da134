"""How many sessions a change of weights moves, beside Maglev's table over the same changes."""

import numpy as np
import pytest

from headrace.dataplane.slot_table import quotas, slot_table
from headrace.schemas.weights import PPM
from maglev import maglev

SIZE = 65_537
SEEDS = range(12)


def weights(n: int, rng: np.random.Generator) -> dict[str, int]:
    shares = rng.dirichlet(np.full(n, 4.0))
    return dict(zip((f"engine-{i:03d}" for i in range(n)), quotas([int(s * 1e9) for s in shares], PPM), strict=True))


def changed(ppm: dict[str, int], how: str, rng: np.random.Generator) -> dict[str, int]:
    victim = list(ppm)[int(rng.integers(len(ppm)))]
    match how:
        case "all shaken by a tenth":
            noise = np.exp(rng.normal(0, 0.1, len(ppm)))
            return {e: int(w * 1_000 * x) for (e, w), x in zip(ppm.items(), noise, strict=True)}
        case "one a quarter more":
            return {e: w * 5 if e == victim else w * 4 for e, w in ppm.items()}
        case "one halved":
            return {e: w if e == victim else w * 2 for e, w in ppm.items()}
        case _:
            return {e: w for e, w in ppm.items() if e != victim}


def ours(ppm: dict[str, int]) -> list[str]:
    engines, owner = slot_table(ppm, SIZE)
    return [engines[i] for i in owner]


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize(
    ("how", "bound"),
    [("all shaken by a tenth", 1.1), ("one a quarter more", 1.0), ("one halved", 1.0), ("one gone", 1.0)],
)
def test_no_more_sessions_move_than_with_maglev(n: int, how: str, bound: float) -> None:
    moved = {"ours": 0, "maglev": 0}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        before = weights(n, rng)
        after = changed(before, how, rng)
        moved["ours"] += sum(a != b for a, b in zip(ours(before), ours(after), strict=True))
        moved["maglev"] += sum(a != b for a, b in zip(maglev(before, SIZE), maglev(after, SIZE), strict=True))
    assert moved["ours"] <= bound * moved["maglev"]
