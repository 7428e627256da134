"""What feedback policies share: measured scores of pools, errors against an average, a step that keeps weights sane.

    error = 1 - score / average        above 0 is better than average; NaN where there is no score

Scores are ms. Averages are over what has a score, by weight; of no weight at all every error is NaN.
"""

import numpy as np

from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.layout import Floats, Layout, sums
from headrace.solver.core.program.plan import normalised

FLOOR = 0.01
"""Least share of a pool, of what it would have by capacity: without traffic nothing is ever measured again."""
MOST = 0.5
"""Most that one step takes from a weight or adds to it, as a share of it."""


def pool_latency_ms(layout: Layout) -> Floats:
    """Give each pool's smoothed measured latency, its engines by what they finish, (G,); NaN without any."""
    usable = [i for i, e in enumerate(layout.engines) if layout.engine_pool[i] >= 0 and e.measured is not None]
    known = [(layout.engine_pool[i], m.rate_rps, m.smoothed_s) for i in usable if (m := layout.engines[i].measured)]
    pool = np.array([g for g, _, _ in known], dtype=np.int64)
    weight = np.array([rate for _, rate, _ in known], dtype=np.float64)
    ms = np.array([s * MS for _, _, s in known], dtype=np.float64)
    total = sums(pool, weight, len(layout.pools))
    return np.divide(sums(pool, weight * ms, len(total)), total, out=np.full_like(total, np.nan), where=total > 0.0)


def previous_shares(layout: Layout, start: float = 1.0) -> Floats:
    """Give the shares that stood, (P,), scaled to 1; a pool that had none begins at `start` of its part by capacity."""
    even = normalised(layout, layout.pool_capacity[layout.pair_pool])
    stood = normalised(layout, layout.pair_previous)
    had = layout.per_row(stood) > 0.0
    fresh = np.where(had, start, 1.0)[layout.pair_row] * np.where(stood > 0.0, 0.0, even)
    left = 1.0 - layout.per_row(fresh)[layout.pair_row]
    return np.asarray(stood * left + fresh, dtype=np.float64)


def errors(layout: Layout, share: Floats, latency_ms: Floats) -> Floats:
    """Give each pair's error against the average of its row, (P,)."""
    score = layout.pair_network + latency_ms[layout.pair_pool]
    known = np.isfinite(score)
    weight = np.where(known, share, 0.0)
    total = layout.per_row(weight)
    mean = np.divide(
        layout.per_row(weight * np.where(known, score, 0.0)), total, out=np.full_like(total, np.nan), where=total > 0.0
    )
    return np.asarray(1.0 - score / mean[layout.pair_row], dtype=np.float64)


def stepped(layout: Layout, share: Floats, step: Floats) -> Floats:
    """Give shares (P,) after each was multiplied by 1 + step, at most `MOST` either way, none below its floor."""
    even = normalised(layout, layout.pool_capacity[layout.pair_pool])
    moved = normalised(layout, share * (1.0 + np.clip(step, -MOST, MOST)))
    return normalised(layout, np.maximum(moved, FLOOR * even))
