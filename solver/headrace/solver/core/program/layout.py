"""A problem as arrays: rows, pools, groups and the pairs of row and pool that may carry flow. Sorted, so order-free.

    row    (cluster, model, class) with its demand
    pool   usable engines with the same models, site, capabilities and residency: to a row they differ in nothing
    group  the engines of a pool that share a profile: slopes do not depend on capacity, so in the optimum they are
           equally loaded, and one set of columns stands for all of them; ties inside a pool vanish
    pair   (row, pool) where every engine of the pool may serve the row

Everything in it is per unit of work (ADR 0029): a request of work w is w units, each of which pays a w-th of what the
request pays on its way. So engines are loaded with work, whatever requests it comes in, and whoever reads a layout need
not know of classes; `requests` says what a flow is in requests.

Sums over engines run in the order of their ids, so the same content gives the same bits whatever order it came in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import PPM, EngineMemory, RouteWeights, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Problem, Row
from headrace.solver.core.program.asked import Asked, asked_of
from headrace.solver.core.program.displaced import after_failover
from headrace.solver.core.program.eligibility import engine_exclusion
from headrace.solver.core.program.pairs import find_pairs
from headrace.solver.core.program.pool import Pool
from headrace.solver.core.program.records_before import RecordsBefore, records_before
from headrace.solver.core.program.stood import Stood, stood_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FEW = 4
"""One of so many, or less, is few."""


def sums(index: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], size: int) -> Floats:
    """Add up values by index, in their order, (size,); of nothing the sums are 0.0."""
    # Of empty input bincount makes integers, whatever the weights are.
    return np.bincount(index, weights=values, minlength=size).astype(np.float64, copy=False)


def _sums_of_few(index: Ints, values: Floats, size: int) -> Floats:
    """Add up the same to the same bits; where most are 0, as most flows are, only the others are looked at."""
    some = np.flatnonzero(values != 0.0)
    few = len(some) * FEW < len(values)
    return sums(index[some], values[some], size) if few else sums(index, values, size)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Weights of engines in rows, sorted by row, then engine: three arrays of one length. Only weights above 0."""

    row: Ints
    engine: Ints
    ppm: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Arrays of R rows, E engines, G pools, H groups, P pairs. Costs in ms per unit of work, flows in work per second.

    Attributes:
        problem: what it was made of.
        rows: (R) sorted by route.
        row_work: (R,) work of one request.
        demand: (R,).
        engines: (E) sorted by id, excluded ones too.
        exclusions: (E) why an engine can take nothing, or None.
        pools: (G) sorted by what they share.
        pool_capacity: (G,).
        group_pool, group_capacity, group_profile: (H) sorted by pool, then profile.
        profiles: the groups' profiles, each once, sorted.
        group_number: (H,) which of these each group has.
        engine_pool, engine_group: (E,) -1 where excluded.
        engine_capacity: (E,) 0 where excluded.
        pair_row, pair_pool: (P,) sorted by row, then pool.
        pair_key: (P,) both in one number that rises: row x G + pool.
        pair_network: (P,) round trip, ms, over the work of a request.
        pair_previous: (P,) share of the row's traffic that the previous snapshot sent there, 0..1.
        pair_warm: (P,) what may stay where they were, of what was not refused: one ppm more than the weight says,
            since weights are rounded, and what was rounded away must not have to move, or a large route's rounding
            would push a small one off.
        row_start: (R + 1,) where each row's pairs begin.
        row_key: (R) Kafka keys.
        asked: (R,) what the rows ask for, and from where.
        row_warm_shed: (R,) what was refused before, at today's demand.
        previous: the previous snapshot's routes by key.
        old: (R) those of the rows, None where there was none.
        records: these as columns.
        stood: their targets.
        before: the previous weights above 0 as they stood; the engine is -1 where it can take nothing any more.
        warm: the same on engines that their rows may still use; the weights of those that are out are where their
            route's failover has put them (`displaced`).
        remembered: what the previous tick left for this one, by engine.
    """

    problem: Problem
    rows: tuple[Row, ...]
    row_work: Floats
    demand: Floats
    engines: tuple[Engine, ...]
    exclusions: tuple[Exclusion | None, ...]
    pools: tuple[Pool, ...]
    pool_capacity: Floats
    group_pool: Ints
    group_capacity: Floats
    group_profile: tuple[str, ...]
    profiles: tuple[str, ...]
    group_number: Ints
    engine_pool: Ints
    engine_group: Ints
    engine_capacity: Floats
    pair_row: Ints
    pair_pool: Ints
    pair_key: Ints
    pair_network: Floats
    pair_previous: Floats
    pair_warm: Floats
    row_start: Ints
    row_key: tuple[bytes, ...]
    row_warm_shed: Floats
    asked: Asked
    previous: Mapping[bytes, RouteWeights]
    old: tuple[RouteWeights | None, ...]
    records: RecordsBefore
    stood: Stood
    before: Entries
    warm: Entries
    remembered: Mapping[str, EngineMemory]

    def pairs_of(self, row: int) -> slice:
        """Give the slice of a row's pairs."""
        return slice(int(self.row_start[row]), int(self.row_start[row + 1]))

    def pool_load(self, group_load: Floats) -> Floats:
        """Add up group loads by pool, (G,)."""
        return sums(self.group_pool, group_load, len(self.pools))

    def per_row(self, pair_values: Floats) -> Floats:
        """Add up pair values by row, (R,)."""
        return _sums_of_few(self.pair_row, pair_values, len(self.rows))

    def least_per_row(self, pair_values: Floats) -> Floats:
        """Give the least of the pair values of each row, (R,); infinity where it has no pair."""
        least = np.full(len(self.rows), np.inf)
        some = np.flatnonzero(np.diff(self.row_start))
        if len(some):
            least[some] = np.minimum.reduceat(pair_values, self.row_start[some])
        return least

    def requests(self, row_values: Floats) -> Floats:
        """Give work of each row, (R,), as requests; what costs a unit of it cost a request this many times as much."""
        return row_values / self.row_work

    def sent_rps(self, flow: Floats) -> float:
        """Give a flow of work, (P,), as requests per second, all together."""
        return float((flow / self.row_work[self.pair_row]).sum())

    def per_pool(self, pair_values: Floats) -> Floats:
        """Add up pair values by pool, (G,)."""
        return _sums_of_few(self.pair_pool, pair_values, len(self.pools))


@dataclass(frozen=True, slots=True, eq=False)
class _Pooled:
    pools: tuple[Pool, ...]
    group_profile: tuple[str, ...]
    group_pool: Ints
    engine_pool: Ints
    engine_group: Ints


def lay_out(problem: Problem, previous: Snapshot | None) -> Layout:
    """Arrange a problem; any of its sequences may be empty, and come in any order."""
    keys, rows = _by_key(problem.rows)
    engines = tuple(sorted(problem.engines, key=lambda engine: engine.engine_id))
    exclusions = tuple(engine_exclusion(engine, problem.profiles) for engine in engines)
    pooled = _pool(engines, exclusions, frozenset(pin.engine_id for pin in problem.pins))
    profiles, group_number = _numbered(pooled.group_profile)
    capacity = np.array([0.0 if e else engine.capacity_rps for engine, e in zip(engines, exclusions, strict=True)])
    asked = asked_of(rows)
    pair_row, pair_pool, pair_network = find_pairs(problem, asked, rows, engines, pooled.pools)
    pair_key = pair_row * len(pooled.pools) + pair_pool
    known = {} if previous is None else {route.key: route for route in previous.routes}
    old = tuple(map(known.get, keys))
    index = {engine.engine_id: i for i, engine in enumerate(engines) if pooled.engine_pool[i] >= 0}
    records = records_before(old)
    stood = stood_of(records, engines, index)
    work = np.array([row.work for row in rows], dtype=np.float64)
    demand = np.array([row.demand_rps for row in rows], dtype=np.float64) * work
    before, warm, pair_previous = _warm((old, stood), pooled, pair_key, index)
    shed: Floats = records.routes["shed_ratio"]
    return Layout(
        problem=problem,
        rows=rows,
        row_work=work,
        demand=demand,
        engines=engines,
        exclusions=exclusions,
        pools=pooled.pools,
        pool_capacity=_of_members(pooled.engine_pool, capacity, len(pooled.pools)),
        group_pool=pooled.group_pool,
        group_capacity=_of_members(pooled.engine_group, capacity, len(pooled.group_pool)),
        group_profile=pooled.group_profile,
        profiles=profiles,
        group_number=group_number,
        engine_pool=pooled.engine_pool,
        engine_group=pooled.engine_group,
        engine_capacity=capacity,
        pair_row=pair_row,
        pair_pool=pair_pool,
        pair_key=pair_key,
        pair_network=pair_network / work[pair_row],
        pair_previous=pair_previous,
        pair_warm=np.where(pair_previous > 0.0, (pair_previous + 1.0 / PPM) * (demand * (1.0 - shed))[pair_row], 0.0),
        row_start=np.searchsorted(pair_row, np.arange(len(rows) + 1)).astype(np.int64),
        row_key=keys,
        row_warm_shed=demand * shed,
        asked=asked,
        previous=known,
        old=old,
        records=records,
        stood=stood,
        before=before,
        warm=warm,
        remembered={} if previous is None else {m.engine_id: m for m in previous.commit.remembered},
    )


def _by_key(rows: Sequence[Row]) -> tuple[tuple[bytes, ...], tuple[Row, ...]]:
    """Sort rows by the Kafka keys of their routes; mostly they come so."""
    keys = tuple([row.route.encode() for row in rows])
    if all(map(lt, keys, keys[1:])):
        return keys, tuple(rows)
    order = sorted(range(len(rows)), key=keys.__getitem__)
    return tuple([keys[i] for i in order]), tuple([rows[i] for i in order])


def _pool(engines: Sequence[Engine], exclusions: Sequence[Exclusion | None], pinned: frozenset[str]) -> _Pooled:
    def shared(e: Engine) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
        alone = e.engine_id if e.engine_id in pinned else ""
        return e.site, _in_order(e.models), _in_order(e.capabilities), _in_order(e.residency), alone

    keys = [shared(engine) for engine in engines]
    usable = sorted((i for i, e in enumerate(exclusions) if e is None), key=keys.__getitem__)
    pools: list[Pool] = []
    profiles: list[str] = []
    group_pool: list[int] = []
    engine_pool, engine_group = [-1] * len(engines), [-1] * len(engines)
    for key, found in groupby(usable, key=keys.__getitem__):
        members = list(found)
        for profile_id, same in groupby(
            sorted(members, key=lambda i: engines[i].profile_id), key=lambda i: engines[i].profile_id
        ):
            for i in same:
                engine_group[i] = len(profiles)
            profiles.append(profile_id)
            group_pool.append(len(pools))
        for i in members:
            engine_pool[i] = len(pools)
        pools.append(Pool(*key, engines=tuple(members)))
    numbers = (np.array(each, dtype=np.int64) for each in (group_pool, engine_pool, engine_group))
    return _Pooled(tuple(pools), tuple(profiles), *numbers)


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Give names, each once, sorted; and which of these each is."""
    each = tuple(sorted(set(names)))
    number = {name: i for i, name in enumerate(each)}
    return each, np.array([number[name] for name in names], dtype=np.int64)


def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) < 2 else tuple(sorted(names))


def _of_members(index: Ints, values: Floats, size: int) -> Floats:
    return sums(index[index >= 0], values[index >= 0], size)


def _warm(
    told: tuple[Sequence[RouteWeights | None], Stood], pooled: _Pooled, keys: Ints, index: dict[str, int]
) -> tuple[Entries, Entries, Floats]:
    """Give the previous weights, those of them that may still stand, and the sums of these by pair as shares."""
    old, stood = told
    some = stood.ppm > 0
    before = Entries(stood.row[some], stood.engine[some], stood.ppm[some])
    displaced: Ints = np.unique(before.row[before.engine < 0])
    gone: list[int] = displaced.tolist()
    moved = [
        (i, index[engine_id], ppm)
        for i in gone
        if (route := old[i]) is not None
        for engine_id, ppm in after_failover(route, index)
        if engine_id in index
    ]
    still: Ints = np.flatnonzero(~np.isin(before.row, displaced))
    of_moved: Ints = np.array(moved, dtype=np.int64).reshape(-1, 3)
    r: Ints = np.concatenate((before.row[still], of_moved[:, 0]))
    e: Ints = np.concatenate((before.engine[still], of_moved[:, 1]))
    ppm: Ints = np.concatenate((before.ppm[still], of_moved[:, 2]))
    wanted = r * len(pooled.pools) + pooled.engine_pool[e]
    at = np.searchsorted(keys, wanted)
    hit = keys[np.minimum(at, len(keys) - 1)] == wanted if len(keys) else np.zeros(len(wanted), dtype=np.bool_)
    r, e, ppm, at = r[hit], e[hit], ppm[hit], at[hit]
    order = np.lexsort((e, r))
    return before, Entries(r[order], e[order], ppm[order]), sums(at, ppm / PPM, len(keys))
