"""Which routes say the same as before, so that their old records stay as they are.

"The same" is what a gateway acts on: engines, weights, addresses, exclusions, fallback, pins, tier, shed and retry
ratios, within the bounds below, demand within 5 %, and the time to first token that is promised, by which engines are
judged, within `PROMISE_STEP`. Other predictions and sentences alone do not make a new record: they would rewrite every
route at every tick.

It is asked of every route in every tick, so it is asked of all of them at once, and of fallbacks some rows at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import Excluded, Reason
from headrace.solver.core.answer.fallback import Fallbacks
from headrace.solver.core.program.layout import Entries, Floats, Ints, Layout

SHED_STEP = 0.001
"""A shed ratio is written again when it moves by more than this, or from or to exactly 0 or 1."""
RETRY_STEP = 0.005
"""A retry ratio likewise, or from or to exactly 0: there is a budget, or there is none."""
DEMAND_STEP = 0.05
"""Relative: how far the demand in a record may be off before the route is written again."""
PROMISE_STEP, PROMISE_S = 0.25, 0.01
"""How far a promised time to first token may be off: relative to the longer, and in seconds, whichever is more. A data
plane takes an engine for broken from twice its promise on (`ttft_factor`)."""
TOGETHER = 4096
"""Rows that are reckoned at once: what they take in the meantime is bounded."""
_TIER, _DEMAND, _HELD = attrgetter("tier"), attrgetter("demand_rps"), attrgetter("demand_held")
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class New:
    """What R routes are to say.

    Attributes:
        weights: their entries.
        shed, retry: ratios, (R,).
        excluded: who is, (R).
        pinned: which engines are, with the reason.
        ttft_s: the time to first token that is promised of each group of engines, (H,).
    """

    weights: Entries
    shed: Floats
    retry: Floats
    excluded: Sequence[tuple[Excluded, ...]]
    pinned: Mapping[int, Mapping[int, str]]
    ttft_s: Floats


def changed_rows(layout: Layout, new: New, fallbacks: Fallbacks) -> Ints:
    """Give the rows whose old record does not say the same any more, or that have none, rising."""
    still = np.flatnonzero(_same_targets(layout, new) & _same_numbers(layout, new))
    still = still[~_other_exclusions(layout, new)[still]]
    changed: Bools = np.ones(len(layout.old), dtype=np.bool_)
    for first in range(0, len(still), TOGETHER):
        rows = still[first : first + TOGETHER]
        changed[rows] = ~fallbacks.are_still(fallbacks.near(rows), rows)
    return np.flatnonzero(changed)


def _same_targets(layout: Layout, new: New) -> Bools:
    """Say of each row whether it had a record of the same weights, addresses and pinned engines, (R,)."""
    rows, ours, theirs, stood = len(layout.rows), new.weights, layout.before, layout.stood
    alike = np.bincount(ours.row, minlength=rows) == np.bincount(theirs.row, minlength=rows)
    of_ours, of_theirs = alike[ours.row], alike[theirs.row]
    off = (ours.engine[of_ours] != theirs.engine[of_theirs]) | (ours.ppm[of_ours] != theirs.ppm[of_theirs])
    differ = np.zeros(rows, dtype=np.bool_)
    differ[ours.row[of_ours][off]] = True
    differ[stood.row[stood.elsewhere & (stood.ppm > 0)]] = True
    differ[stood.row[_broken_promises(layout, new)]] = True
    told: Ints = np.flatnonzero(stood.pinned)
    if new.pinned or len(told):
        was, now = dict[int, list[int]](), {row: sorted(engines) for row, engines in new.pinned.items() if engines}
        for row, engine in zip(stood.row[told].tolist(), stood.engine[told].tolist(), strict=True):
            was.setdefault(row, []).append(engine)
        other = [row for row in sorted(was.keys() | now.keys()) if was.get(row) != now.get(row)]
        differ[other] = True
        # A pin that is said anew bounds what a failover may bring its engine, whether or not it bounds the weight.
        differ[[row for row in sorted(new.pinned) if not differ[row] and _says_other_pins(layout, row, new)]] = True
    return np.asarray(alike & ~differ & layout.records.routes["there"], dtype=np.bool_)


def _says_other_pins(layout: Layout, row: int, new: New) -> bool:
    """Say whether a row's old record, of the same pinned engines, has not the words of their pins."""
    was = layout.old[row]
    words = {layout.engines[engine].engine_id: said for engine, said in new.pinned[row].items()}
    return was is None or any(t.engine_id in words and words[t.engine_id] not in t.sentence for t in was.targets)


def _broken_promises(layout: Layout, new: New) -> Bools:
    """Say of each target of the old records whether its engine, where it takes traffic, is to be judged otherwise."""
    stood = layout.stood
    told: Bools = (stood.engine >= 0) & (stood.ppm > 0)
    now = np.full(len(stood.engine), np.nan)
    now[told] = new.ttft_s[layout.engine_group[stood.engine[told]]]
    bound = np.maximum(PROMISE_STEP * np.maximum(now, stood.ttft_s), PROMISE_S)
    return np.asarray(np.abs(now - stood.ttft_s) > bound, dtype=np.bool_)


def _same_numbers(layout: Layout, new: New) -> Bools:
    """Say of each row whether tier, ratios and demand are what they were, within bounds, (R,)."""
    was = layout.records.routes
    same = np.array(list(map(_TIER, layout.rows)), dtype=np.int64) == was["tier"]
    now, before = np.array(list(map(_DEMAND, layout.rows)), dtype=np.float64), was["demand_rps"]
    same &= np.abs(now - before) <= DEMAND_STEP * np.maximum(now, before)
    now, before = new.retry, was["retry_ratio"]
    same &= (np.abs(now - before) <= RETRY_STEP) & ((now == 0.0) == (before == 0.0))
    now, before = new.shed, was["shed_ratio"]
    same &= np.abs(now - before) <= SHED_STEP
    same &= ((now == 0.0) | (now == 1.0)) == ((before == 0.0) | (before == 1.0))
    held = np.array(list(map(_HELD, layout.rows)), dtype=np.bool_)
    return np.asarray(same & (held == was["held"]), dtype=np.bool_)


def _other_exclusions(layout: Layout, new: New) -> Bools:
    """Say of each row whether others are excluded than before, or for other reasons, (R,)."""
    now: Bools = np.array(list(map(bool, new.excluded)), dtype=np.bool_)
    other = now != layout.records.routes["excludes"]
    # Most routes exclude nobody.
    both: list[int] = np.flatnonzero(now & ~other).tolist()
    for row in both:
        was = layout.old[row]
        other[row] = was is None or _named(was.excluded) != _named(new.excluded[row])
    return np.asarray(other, dtype=np.bool_)


def _named(excluded: tuple[Excluded, ...]) -> list[tuple[str, Reason]]:
    return [(each.engine_id, each.reason) for each in excluded]
