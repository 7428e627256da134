"""Chords halved where the answer is, until what they leave out of the true cost is certified to be little.

    gap > refine_above  ──►  each chord that a group's load lies on, or ends at, is cut in two  ──►  solved again

A chord's error is largest in its middle and falls with the square of its width, and only chords at the answer's loads
count: two or three cuts there do what many times the chords would do everywhere. A curve that is not convex keeps a gap
that no chord can close, so a cut that hardly helps is the last one.
"""

import numpy as np

from headrace.solver.core.profile.segments import GRID, segments_of
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Curves
from headrace.solver.settings import SolverSettings

MOST = 4
"""How often chords are cut in one tick."""
HELPS = 0.9
"""A cut that leaves more of the gap than this share of it is the last."""
LOADS = 16
"""Quantiles of the loads of one profile's groups that are looked at: a bound on its chords."""


def refined(layout: Layout, settings: SolverSettings, curves: Curves, load: Floats) -> Curves:
    """Give the curves with more chords around the loads (H,) of their groups, RPS."""
    used = np.clip(load / layout.group_capacity, 0.0, 1.0)
    chords = dict(curves.chords)
    for number, profile_id in enumerate(layout.profiles):
        cost, loads = curves.exact[profile_id], used[layout.group_number == number]
        if len(loads) > LOADS:
            loads = np.quantile(loads, np.linspace(0.0, 1.0, LOADS))
        knots = chords[profile_id].knots
        cut = _touched(knots, loads) & (np.diff(knots) >= 2.0 / GRID)
        middles = np.round((knots[:-1] + knots[1:])[cut] / 2.0 * GRID) / GRID
        inner = np.unique(np.concatenate((knots[1:-1], middles)))
        chords[profile_id] = segments_of(cost, settings.segments, None, tuple(inner.tolist()))
    return Curves(curves.exact, chords, curves.steady)


def _touched(knots: Floats, loads: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Say of each chord whether any of the loads lies on it, its ends included, (S,)."""
    near = 0.5 / GRID
    return np.asarray(
        ((loads[:, None] >= knots[None, :-1] - near) & (loads[:, None] <= knots[None, 1:] + near)).any(axis=0),
        dtype=np.bool_,
    )
