"""The targets of the previous snapshot as columns: read once a tick, since every way of every route has one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, is_, ne

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import Reason, RouteWeights
from headrace.solver.core.problem import Engine

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_TARGETS, _ID, _PPM = attrgetter("targets"), attrgetter("engine_id"), attrgetter("weight_ppm")
_PRICE, _ADDRESS, _REASON = attrgetter("engine_price_ms"), attrgetter("address"), attrgetter("reason")
_TTFT = attrgetter("ttft_s")


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


def stood_of(old: Sequence[RouteWeights | None], engines: Sequence[Engine], index: Mapping[str, int]) -> Stood:
    """Read the old records of rows (R); `index` finds the engines that can take something."""
    # In C as far as it goes.
    routes = [route for route in old if route is not None]
    targets = list(chain.from_iterable(map(_TARGETS, routes)))
    count = [0 if route is None else len(route.targets) for route in old]
    engine = [index.get(name, -1) for name in map(_ID, targets)]
    now = [engines[e].address for e in engine] if engines else [None] * len(engine)
    pinned = map(is_, map(_REASON, targets), [Reason.PINNED] * len(targets))
    return Stood(
        row=np.repeat(np.arange(len(old)), np.array(count, dtype=np.int64)),
        engine=np.array(engine, dtype=np.int64),
        ppm=np.array(list(map(_PPM, targets)), dtype=np.int64),
        price_ms=np.array(list(map(_PRICE, targets)), dtype=np.float64),
        ttft_s=np.array(list(map(_TTFT, targets)), dtype=np.float64),
        elsewhere=np.array(list(map(ne, map(_ADDRESS, targets), now)), dtype=np.bool_),
        pinned=np.array(list(pinned), dtype=np.bool_),
    )
