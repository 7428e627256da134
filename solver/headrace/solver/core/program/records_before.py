"""The records of the previous snapshot as columns. Each is read once, since most of them stand from tick to tick.

    the record that was there at the last tick, the very same object  ──► its numbers are copied
    any other                                                         ──► it is read

A record is a value: what was read of it holds as long as it stands. Reading takes a step of Python for every field of
every share, 300,000 of them in a large fleet; copying takes none. What is given depends on nothing but the records:
only the last ones are remembered, and forgetting them costs time alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import attrgetter, is_, is_not
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import FallbackTarget, Reason, RouteWeights, Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = dict[str, npt.NDArray[Any]]
DEMAND_HELD = "demand held at the last known: nothing is heard of it now"
"""What ends the sentence of a route whose demand is not measured any more."""
MOST_NAMES = 1 << 17
"""So many names of engines are kept; with more of them, of engines long gone, all records are read anew."""
_TARGETS, _FALLBACK = attrgetter("targets"), attrgetter("fallback")
_ID, _ADDRESS, _PPM = attrgetter("engine_id"), attrgetter("address"), attrgetter("weight_ppm")
_ROUTE_INTS = {name: attrgetter(name) for name in ("version", "tier")}
_ROUTE_FLOATS = {name: attrgetter(name) for name in ("demand_rps", "shed_ratio", "retry_ratio")}
_TARGET_FLOATS = {"price_ms": attrgetter("engine_price_ms"), "ttft_s": attrgetter("ttft_s")}
_REASON = attrgetter("reason")


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Shares of R routes, (T,) in all: `count` (R,) of each route, one route's behind the other's.

    `columns` has of each share at least `name`, the number of its engine with its address, and `ppm`.
    """

    count: Ints
    columns: Columns

    @property
    def start(self) -> Ints:
        """Where each route's begin, (R,)."""
        return np.cumsum(self.count) - self.count

    def places_of(self, rows: Ints) -> Ints:
        """Give where the shares of some rows are, in the order of these."""
        return places(self.start[rows], self.count[rows])


@dataclass(frozen=True, slots=True, eq=False)
class RecordsBefore:
    """R records.

    Attributes:
        records: themselves; None where there was none.
        names: engine and address by number.
        routes: (R,) `there`, `held` (nothing is heard of its demand), `excludes` (any engine), `version`, `tier`,
            `demand_rps`, `shed_ratio`, `retry_ratio`; of a record that is not there all 0.
        targets: with `price_ms` and `ttft_s`, NaN where none is told, and `pinned`.
        fallback: of the static fallbacks.
    """

    records: tuple[RouteWeights | None, ...]
    names: dict[tuple[str, str | None], int]
    routes: Columns
    targets: Shares
    fallback: Shares


@dataclass(slots=True)
class _Memory:
    """The last records that were read, of one thread as of many: it is replaced as a whole."""

    last: RecordsBefore | None = field(default=None)


_MEMORY = _Memory()


def records_before(records: tuple[RouteWeights | None, ...]) -> RecordsBefore:
    """Give records as columns."""
    last = _MEMORY.last
    if last is None or len(last.records) != len(records) or len(last.names) > MOST_NAMES:
        found = _read(records, {})
    elif all(map(is_, records, last.records)):
        return last
    else:
        found = _spliced(last, records)
    _MEMORY.last = found
    return found


def forget() -> None:
    """Forget the last records: what is given afterwards is the same, and takes longer."""
    _MEMORY.last = None


def _read(records: tuple[RouteWeights | None, ...], names: dict[tuple[str, str | None], int]) -> RecordsBefore:
    """Read records, in C as far as it goes; names that are new get the next numbers."""
    there = [record for record in records if record is not None]
    at: Bools = np.array([record is not None for record in records], dtype=np.bool_)
    held = [record.sentence.endswith(DEMAND_HELD) for record in there]
    excludes = [bool(record.excluded) for record in there]
    routes: Columns = {
        "there": at,
        "held": _where(at, held, np.bool_),
        "excludes": _where(at, excludes, np.bool_),
    }
    routes |= {name: _where(at, list(map(get, there)), np.int64) for name, get in _ROUTE_INTS.items()}
    routes |= {name: _where(at, list(map(get, there)), np.float64) for name, get in _ROUTE_FLOATS.items()}
    of_targets = list(map(_TARGETS, there))
    targets: list[Target] = list(chain.from_iterable(of_targets))
    columns = _columns(targets, names)
    columns |= {name: np.array(list(map(get, targets)), dtype=np.float64) for name, get in _TARGET_FLOATS.items()}
    pinned = map(is_, map(_REASON, targets), [Reason.PINNED] * len(targets))
    columns["pinned"] = np.array(list(pinned), dtype=np.bool_)
    count = _where(at, list(map(len, of_targets)), np.int64)
    of_fallbacks = list(map(_FALLBACK, there))
    fallback = Shares(
        _where(at, list(map(len, of_fallbacks)), np.int64), _columns(list(chain.from_iterable(of_fallbacks)), names)
    )
    return RecordsBefore(records, names, routes, Shares(count, columns), fallback)


def _columns(shares: Sequence[Target | FallbackTarget], names: dict[tuple[str, str | None], int]) -> Columns:
    for each in dict.fromkeys(zip(map(_ID, shares), map(_ADDRESS, shares), strict=True)):
        names.setdefault(each, len(names))
    told = zip(map(_ID, shares), map(_ADDRESS, shares), strict=True)
    name = np.fromiter(map(names.__getitem__, told), dtype=np.int32, count=len(shares))
    return {"name": name, "ppm": np.fromiter(map(_PPM, shares), dtype=np.int32, count=len(shares))}


def _spliced(last: RecordsBefore, records: tuple[RouteWeights | None, ...]) -> RecordsBefore:
    """Read the records that are others than the last ones, and put them between those."""
    is_new = list(map(is_not, records, last.records))
    # Numbers of names are never taken back, so that those of the last records stay true; a copy may grow.
    fresh = _read(tuple(compress(records, is_new)), dict(last.names))
    new: Bools = np.array(is_new, dtype=np.bool_)
    routes = {name: column.copy() for name, column in last.routes.items()}
    for name, column in routes.items():
        column[new] = fresh.routes[name]
    targets, fallback = _put(last.targets, fresh.targets, new), _put(last.fallback, fresh.fallback, new)
    return RecordsBefore(records, fresh.names, routes, targets, fallback)


def _put(last: Shares, fresh: Shares, new: Bools) -> Shares:
    count, old = last.count.copy(), np.flatnonzero(~new)
    count[new] = fresh.count
    made, source = Shares(count, {}), last.places_of(old)
    kept, came = made.places_of(old), made.places_of(np.flatnonzero(new))
    for name, column in last.columns.items():
        put = np.empty(int(count.sum()), dtype=column.dtype)
        put[kept], put[came] = column[source], fresh.columns[name]
        made.columns[name] = put
    return made


def _where(at: Bools, values: Sequence[Any] | npt.NDArray[Any], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Give values at their places, (R,), 0 elsewhere."""
    found = np.zeros(len(at), dtype=kind)
    found[at] = values
    return found


def places(start: Ints, count: Ints) -> Ints:
    """Give start, start + 1, ... of each, count of them, behind each other."""
    before: Ints = np.cumsum(count) - count
    return np.arange(int(count.sum()), dtype=np.int64) + np.repeat(start - before, count)
