"""The targets of the previous snapshot as columns: what of them is true of the engines that there are now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.solver.core.problem import Engine
from headrace.solver.core.program.records_before import RecordsBefore

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Stood:
    """Targets (T,), by row and in the order of their records.

    Attributes:
        row: that it is of.
        engine: index into the layout's; -1 where it can take nothing any more.
        ppm: its weight.
        price_ms: price of the engine; NaN where none was told.
        ttft_s: the time to first token that was promised; NaN where none was.
        elsewhere: whether the engine had another address.
        pinned: whether an operator held its share.
    """

    row: Ints
    engine: Ints
    ppm: Ints
    price_ms: Floats
    ttft_s: Floats
    elsewhere: Bools
    pinned: Bools


def stood_of(before: RecordsBefore, engines: Sequence[Engine], index: Mapping[str, int]) -> Stood:
    """Give the targets of records (R); `index` finds the engines that can take something."""
    # Names are fewer than targets.
    of_name = [index.get(engine_id, -1) for engine_id, _ in before.names]
    moved = [e >= 0 and engines[e].address != address for e, (_, address) in zip(of_name, before.names, strict=True)]
    targets, name = before.targets.columns, before.targets.columns["name"]
    return Stood(
        row=np.repeat(np.arange(len(before.records)), before.targets.count),
        engine=np.array(of_name, dtype=np.int64)[name],
        ppm=targets["ppm"].astype(np.int64),
        price_ms=targets["price_ms"],
        ttft_s=targets["ttft_s"],
        elsewhere=np.array(moved, dtype=np.bool_)[name],
        pinned=targets["pinned"],
    )
