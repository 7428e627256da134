"""The chords of groups as columns of a program: a slope in ms, and how many RPS fit on it, group by group."""

from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.layout import Floats, Ints, Layout
from headrace.solver.core.program.plan import Curves


@dataclass(frozen=True, slots=True, eq=False)
class ChordColumns:
    """(H,) `count` of chords of each group; (Y,) `slope` and `width` of each chord, a group's from flat to steep."""

    count: Ints
    slope: Floats
    width: Floats


def chord_columns(layout: Layout, curves: Curves, groups: Ints) -> ChordColumns:
    """Give the chords of the layout's groups of these numbers; widths are of a group's whole capacity."""
    of_group = layout.group_number[groups]
    chords = [curves.chords[profile_id] for profile_id in layout.profiles]
    sizes = np.array([len(c.slopes) for c in chords], dtype=np.int64)
    count = sizes[of_group]
    # Where each group's chords are among those of all profiles.
    before = (np.cumsum(sizes) - sizes)[of_group] - (np.cumsum(count) - count)
    at = np.arange(int(count.sum())) + np.repeat(before, count)
    slope = np.concatenate([np.zeros(0), *(c.slopes for c in chords)])[at]
    width = np.concatenate([np.zeros(0), *(c.widths for c in chords)])[at]
    return ChordColumns(count, slope, width * np.repeat(layout.group_capacity[groups], count))
