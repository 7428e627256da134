"""Slots of a prime-sized table, given to engines by an exponential race, exact to their weights.

    engine e claims slot (a_e k + b_e) mod N as its k-th claim, at the time  -ln(1 - (k + 1/2) / N) / w_e

a_e and b_e come from the hash of the engine's id, so each engine has its own fixed order of claims and only the pace
depends on the weights. The earliest claim wins a slot: weighted rendezvous hashing, slot by slot. Then engines above
their quota (largest remainder of N w / sum w) release their latest claims, and engines below it take those.

A pure function of (ids, ppm, N): data planes agree without talking, restoring the weights restores the table, and a
change of weights moves little more than it must. Times are integers (2^-30 of the unit of the logarithm, divided
exactly), so that machines agree too. Zero weight gets no slot; no weight at all gives no table, never an error.

Source: weighted rendezvous hashing (Schindelhauer and Schomaker 2005); table filling as in Maglev (Eisenbud et al.,
NSDI 2016), with weights and without its dependence on the order of back ends.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

Ints = npt.NDArray[np.int64]

NOBODY: Final = -1
_TIME_BITS: Final = 30
_PACE_BITS: Final = 20
_NEVER: Final = np.iinfo(np.int64).max
_RACE_UNTIL: Final = 6.0
"""Mean claims per slot that are raced in bulk; the e^-6 of the slots still free are then looked up one by one."""


def slot_table(ppm: Mapping[str, int], size: int) -> tuple[tuple[str, ...], Ints]:
    """Give each slot its engine.

    Args:
        ppm: weight per engine, integers of at least 0; only their ratios matter.
        size: number of slots, a prime.

    Returns:
        The engines with a weight, sorted, and the index into them for each slot, shape (size,); ((), an empty array)
        where no engine has a weight.
    """
    engines = tuple(sorted(engine for engine, weight in ppm.items() if weight > 0))
    if not engines:
        return (), np.empty(0, np.int64)
    weights = [ppm[engine] for engine in engines]
    # In lowest terms, so that times are divided, and rounded, alike at any scale.
    scale = math.gcd(*weights)
    race = _Race(engines, [weight // scale for weight in weights], size)
    owner, time = race.run()
    race.trim(owner, time)
    return engines, owner


def quotas(ppm: Sequence[int], size: int) -> list[int]:
    """Give the number of slots each weight is due, by largest remainder; equal remainders go to the first.

    The sum is `size`, and each is within one of size * ppm / sum(ppm). All zero where no weight is positive.
    """
    total = sum(ppm)
    if total <= 0:
        return [0] * len(ppm)
    whole = [weight * size // total for weight in ppm]
    by_remainder = sorted(range(len(ppm)), key=lambda i: (-(ppm[i] * size % total), i))
    for i in by_remainder[: size - sum(whole)]:
        whole[i] += 1
    return whole


def order_of(engine: str, size: int) -> tuple[int, int]:
    """Give (start, back) of an engine's order of claims: slot s is its claim number (s - start) x back mod size."""
    start, step = _start_and_step(engine, size)
    return start, pow(step, -1, size)


def _start_and_step(engine: str, size: int) -> tuple[int, int]:
    h = xxhash.xxh3_128_intdigest(engine.encode())
    return (h & 0xFFFF_FFFF_FFFF_FFFF) % size, 1 + (h >> 64) % (size - 1)


@lru_cache(maxsize=8)
def claim_times(size: int) -> Ints:
    """Give the time of an engine's k-th claim at weight 1, in 2^-30, shape (size,), strictly increasing."""
    k = np.arange(size)
    times: Ints = np.rint(-np.log1p(-(k + 0.5) / size) * 2.0**_TIME_BITS).astype(np.int64)
    times.flags.writeable = False
    return times


class _Race:
    """One race: the engines' claim orders and paces. Lives only while a table is built."""

    def __init__(self, engines: Sequence[str], ppm: Sequence[int], size: int) -> None:
        self.size = size
        self.times = claim_times(size) << _PACE_BITS
        self.weights = np.array(ppm, np.int64)
        self.quotas = np.array(quotas(ppm, size), np.int64)
        orders = [_start_and_step(engine, size) for engine in engines]
        self.step = np.array([step for _, step in orders], np.int64)
        self.start = np.array([start for start, _ in orders], np.int64)
        self.back = np.array([pow(int(step), -1, size) for step in self.step], np.int64)

    def run(self) -> tuple[Ints, Ints]:
        """Give the winner of each slot and the time of its claim; the lower index wins a tie."""
        owner = np.full(self.size, NOBODY, np.int64)
        time = np.full(self.size, _NEVER, np.int64)
        share = self.weights / self.weights.sum()
        claims = np.ceil(self.size * -np.expm1(-share * _RACE_UNTIL)).astype(np.int64)
        # Claims after this instant are not all there, so what they would win is left to the look-up.
        until = int(_RACE_UNTIL / int(self.weights.sum()) * 2.0 ** (_TIME_BITS + _PACE_BITS))
        order = np.arange(int(claims.max()))
        for i, count in enumerate(claims.tolist()):
            slots = (self.step[i] * order[:count] + self.start[i]) % self.size
            claimed = self.times[:count] // self.weights[i]
            earlier = claimed < time[slots]
            owner[slots[earlier]] = i
            time[slots[earlier]] = claimed[earlier]
        late = np.flatnonzero(time >= until)
        everyone = np.arange(len(self.weights))
        claimed = self.claim_times(everyone, late)
        owner[late] = claimed.argmin(axis=0)
        time[late] = claimed.min(axis=0)
        return owner, time

    def claim_times(self, engines: Ints, slots: Ints) -> Ints:
        """Give when each of the engines claims each of the slots, shape (engines, slots)."""
        k = (slots[None, :] - self.start[engines, None]) * self.back[engines, None] % self.size
        claimed: Ints = self.times[k] // self.weights[engines, None]
        return claimed

    def trim(self, owner: Ints, time: Ints) -> None:
        """Bring every engine to its quota, in place: latest claims are released, and taken by their earliest claim.

        In rounds: each free slot asks the engine with room that claims it first; an engine with more asking than room
        takes the earliest. Each round fills an engine or places every slot, so there are at most as many as engines.
        """
        held = np.bincount(owner, minlength=len(self.weights))
        free = self._release(owner, time, held)
        room = self.quotas - np.minimum(held, self.quotas)
        takers = np.flatnonzero(room)
        claimed = self.claim_times(takers, free)
        while free.size:
            asked = claimed.argmin(axis=0)
            at = claimed[asked, np.arange(free.size)]
            order = np.lexsort((free, at, asked))
            rank = np.empty(free.size, np.int64)
            rank[order] = _ranks(asked[order])
            placed = rank < room[takers[asked]]
            owner[free[placed]] = takers[asked[placed]]
            room -= np.bincount(takers[asked[placed]], minlength=len(room))
            free, claimed = free[~placed], claimed[:, ~placed]
            claimed[room[takers] == 0] = _NEVER

    def _release(self, owner: Ints, time: Ints, held: Ints) -> Ints:
        """Give the slots that engines above their quota hold latest, sorted."""
        slots = np.flatnonzero((held > self.quotas)[owner])
        slots = slots[np.lexsort((slots, time[slots], owner[slots]))]
        surplus = _ranks(owner[slots]) >= self.quotas[owner[slots]]
        return np.sort(slots[surplus])


def _ranks(grouped: Ints) -> Ints:
    """Give each item's place in its run of equal neighbours: [4, 4, 7] is [0, 1, 0]."""
    if not grouped.size:
        return grouped
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    lengths = np.diff(np.r_[first, grouped.size])
    ranks: Ints = np.arange(grouped.size) - np.repeat(first, lengths)
    return ranks
