"""Requests by latency: weights on a logarithmic grid, so that quantiles of any mixture are read without its parts.

    cell i holds (LEAST 2^(i/PER_OCTAVE), LEAST 2^((i+1)/PER_OCTAVE)]: 2.2 % wide, so a quantile is at most that far off
    a quantile is read within its cell as if requests were spread evenly over it, on the logarithmic scale

What is shorter than the grid counts in its first cell, what is longer in its last. Means never come from here.
"""

import numpy as np
import numpy.typing as npt

from headrace.solver.core.program.layout import sums as add_up

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_S = 0.001
PER_OCTAVE = 32
OCTAVES = 20
CELLS = OCTAVES * PER_OCTAVE
MIDDLES_S: Floats = LEAST_S * np.exp2((np.arange(CELLS) + 0.5) / PER_OCTAVE)
UPPER_S: Floats = LEAST_S * np.exp2((np.arange(CELLS) + 1.0) / PER_OCTAVE)


def no_mass() -> Floats:
    """Give an empty grid, (CELLS,)."""
    return np.zeros(CELLS)


def mass_of(latency_s: Floats, weight: Floats) -> Floats:
    """Count weights by latency, (CELLS,); both arrays of any one shape."""
    return add_up(cells_of(latency_s).ravel(), weight.ravel(), CELLS)


def cells_of(latency_s: Floats) -> Ints:
    """Give the cell of each latency, of the same shape."""
    cell = np.maximum(latency_s, LEAST_S)
    cell /= LEAST_S
    np.log2(cell, out=cell)
    cell *= PER_OCTAVE
    return np.minimum(cell, CELLS - 1, out=cell).astype(np.int64)  # whole numbers below: nothing is below 0


def quantile_s(mass: Floats, q: float) -> float | None:
    """Give the q-quantile in seconds; None of nothing."""
    return None if mass.sum() <= 0.0 else float(quantiles_s(mass[None, :], q)[0])


def quantiles_s(masses: Floats, q: float) -> Floats:
    """Give the q-quantile of each row of (N, CELLS), (N,); 0 of an empty row."""
    total, risen = masses.sum(axis=1), np.cumsum(masses, axis=1)
    wanted = q * total * (1.0 - 1e-12)
    cell = np.argmax(risen >= wanted[:, None], axis=1)
    rows = np.arange(len(masses))
    inside = masses[rows, cell]
    missing = wanted - (risen[rows, cell] - inside)
    part = np.clip(np.divide(missing, inside, out=np.full(len(masses), 0.5), where=inside > 0.0), 0.0, 1.0)
    return np.where(total > 0.0, LEAST_S * np.exp2((cell + part) / PER_OCTAVE), 0.0)


def ecdf(mass: Floats, points: int = 200) -> tuple[tuple[float, float], ...]:
    """Give (seconds, share at or below) where the share rises, at most about `points` of them."""
    total = mass.sum()
    if total <= 0.0:
        return ()
    share = np.cumsum(mass) / total
    kept: list[tuple[float, float]] = []
    last = 0.0
    for i in np.flatnonzero(mass).tolist():
        if share[i] - last >= 1.0 / points or share[i] > 1.0 - 1.0 / points:
            kept.append((float(UPPER_S[i]), float(share[i])))
            last = float(share[i])
    return tuple(kept)
