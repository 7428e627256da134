"""Sums over the parts of a layout, all parts at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.hubs import Bools
from headrace.solver.core.program.layout import Floats, Ints, Layout, sums
from headrace.solver.core.program.parts import Part


@dataclass(frozen=True, slots=True, eq=False)
class PartSums:
    """Which of N parts each row (R,), pool (G,) and engine (E,) of a layout is in; N where it is in none.

    What is given back is of the parts, and of all that is in none behind them, (N + 1,).
    """

    layout: Layout
    parts: int
    row: Ints
    pool: Ints
    engine: Ints

    def of_pairs(self, pairs: Ints, values: Floats) -> Floats:
        """Add up values of some pairs, by row first."""
        rows = sums(self.layout.pair_row[pairs], values, len(self.layout.rows))
        return sums(self.row, rows, self.parts + 1)

    def of_groups(self, values: Floats) -> Floats:
        """Add up values of groups, (H,)."""
        return sums(self.pool[self.layout.group_pool], values, self.parts + 1)

    def of_engines(self, values: Floats) -> Floats:
        """Add up values of engines, (E,)."""
        return sums(self.engine, values, self.parts + 1)

    def any_of(self, part: Ints, which: Bools) -> Bools:
        """Say whether any row, pool or engine is so; `part` is the field that numbers them."""
        found = np.zeros(self.parts + 1, dtype=np.bool_)
        found[part[which]] = True
        return found


def part_sums(layout: Layout, parts: Sequence[Part]) -> PartSums:
    """Number the rows, pools and engines of a layout's parts."""
    row, pool = (np.full(len(of), len(parts), dtype=np.int64) for of in (layout.rows, layout.pools))
    for number, part in enumerate(parts):
        row[part.rows], pool[part.pools] = number, number
    # An engine that is out has no pool, and is in no part.
    engine = np.append(pool, len(parts))[layout.engine_pool]
    return PartSums(layout, len(parts), row, pool, engine)
