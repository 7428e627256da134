"""Pins in the answer: whatever the policy, its weights keep to them; and what each pin came to, in words.

    x = share x served      pinned pairs are clipped to [least, most] x demand, a row's others share what is left

The linear program has pins among its bounds, so of its plans only rows without demand are changed here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from headrace.schemas.weights import Protected
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.pins import ROOM, Pins, pairs_at_most, pins_of
from headrace.solver.core.program.plan import Plan, split_by_capacity

NONE_SERVED = 1e-9
"""Share of a route's demand below which what is served is rounding."""
PIN = "pin"
"""The name of pins among a commit's protections."""


def held_to_pins(layout: Layout, plan: Plan) -> Plan:
    """Give the plan with every pinned share within its bounds; the same plan where all are."""
    pins = pins_of(layout)
    if not pins:
        return plan
    share, flow, shed, kept = plan.share.copy(), plan.flow.copy(), plan.shed.copy(), plan.kept.copy()
    for row in sorted(set(layout.pair_row[pins.pair].tolist())):
        pairs = layout.pairs_of(row)
        asked = float(layout.demand[row])
        served = asked - float(plan.shed[row])
        if served <= NONE_SERVED * asked:
            # Weights of what is not asked for, or all refused, are for whoever comes: they keep to pins as well.
            asked, served = 0.0, 1.0
        held = _row_held(layout, pins, row, share[pairs] * served, asked or 1.0)
        if held is None:
            continue
        total = float(held.sum())
        share[pairs] = held / total if total > 0.0 else 0.0
        kept[row] = False
        if asked > 0.0:
            flow[pairs], shed[row] = held, max(asked - total, 0.0)
    answer = None if plan.answer is None else held_to_pins(layout, plan.answer)
    return replace(plan, share=share, flow=flow, shed=shed, kept=kept, load=_load(layout, plan, flow), answer=answer)


def _row_held(layout: Layout, pins: Pins, row: int, flow: Floats, asked: float) -> Floats | None:
    """Give a row's flow (its pairs,) of what is asked for within its pins; None where it is. Shares are of 1."""
    first = int(layout.row_start[row])
    mine = np.flatnonzero(layout.pair_row[pins.pair] == row)
    at = pins.pair[mine] - first
    least, most = pins.least[mine] * asked, pins.most[mine] * asked
    if bool(((flow[at] >= least - ROOM * asked) & (flow[at] <= most + ROOM * asked)).all()):
        return None
    total = float(flow.sum())
    held = np.zeros_like(flow)
    held[at] = np.clip(flow[at], least, most)
    left = max(total - float(held[at].sum()), 0.0)
    others = flow.copy()
    others[at] = 0.0
    if not others.any():
        others = layout.pool_capacity[layout.pair_pool[layout.pairs_of(row)]].copy()
        others[at] = 0.0
    if others.any():
        return held + others * (left / float(others.sum()))
    # Nobody else may serve it: the pinned ones take what their bounds allow, and the rest is refused.
    room = most - held[at]
    held[at] += room * min(left / float(room.sum()), 1.0) if room.any() else 0.0
    return held


def _load(layout: Layout, plan: Plan, flow: Floats) -> Floats:
    """Give the load of each group, (H,): as the plan split each pool's flow, scaled to what it is now."""
    before, now = (layout.per_pool(f)[layout.group_pool] for f in (plan.flow, flow))
    same = np.abs(now - before) <= 1e-9 * np.maximum(before, 1.0)
    scaled = np.divide(plan.load * now, before, out=split_by_capacity(layout, flow), where=before > 0.0)
    return np.where(same, plan.load, scaled)


def pins_told(layout: Layout) -> tuple[Protected, ...]:
    """Say for each pinned engine who pinned it to what, and what could not be held; factor 1: nothing is scaled."""
    said: dict[str, list[str]] = {}
    pins = pins_of(layout)
    for i, pin in enumerate(layout.problem.pins):
        words = "; ".join((f"{pin.cluster} {pin.sentence}", *_not_held(layout, pins, i)))
        said.setdefault(pin.engine_id, []).append(words)
    return tuple(Protected(engine_id, PIN, 1.0, "; ".join(words)) for engine_id, words in sorted(said.items()))


def _not_held(layout: Layout, pins: Pins, number: int) -> Iterator[str]:
    pin = layout.problem.pins[number]
    mine = np.flatnonzero(pins.of == number)
    if not len(mine):
        outs = {e.engine_id: out for e, out in zip(layout.engines, layout.exclusions, strict=True)}
        out = outs.get(pin.engine_id)
        why = f"{out.reason}, {out.sentence}" if out is not None else f"no route of {pin.cluster} may use it"
        yield f"it waits: {why if pin.engine_id in outs else 'there is no such engine'}"
    elif bool((pins.least[mine] < pin.least - ROOM).any()):
        worst = mine[np.argmin(pins.least[mine])]
        asked, held = float(pins.asked[worst]), float(pins.least[worst])
        told = f"held to {100 * held:.1f} %"
        # Scaled for both, the one that leaves less is why.
        if held * asked < pin.least * (1.0 - ROOM):
            yield f"{told}, for want of room"
        else:
            row = layout.rows[layout.pair_row[pins.pair[worst]]]
            yield f"{told}: the pins of {row.route} add up to {100 * asked:g} %, and are scaled to 100 %"


def pinned_engines(layout: Layout) -> Mapping[int, Mapping[int, str]]:
    """Give the words of each pin by row and engine, both as indices into the layout."""
    found: dict[int, dict[int, str]] = {}
    pins = pins_of(layout)
    for pair, number in zip(pins.pair.tolist(), pins.of.tolist(), strict=True):
        (engine,) = layout.pools[layout.pair_pool[pair]].engines
        found.setdefault(int(layout.pair_row[pair]), {})[engine] = layout.problem.pins[number].sentence
    return found


def ways_at_most(layout: Layout, plan: Plan) -> Mapping[int, tuple[float, str, str]]:
    """Give by row the cheapest way that has all that its pin allows: ms of a request, the engine, and the pin in words.

    A row may go on to dearer engines for it. Empty without prices.
    """
    found: dict[int, tuple[float, str, str]] = {}
    pins = pins_of(layout)
    if plan.prices is None or not pins:
        return found
    full, pairs, numbers = pairs_at_most(layout, plan), pins.pair.tolist(), pins.of.tolist()
    for pair, number in zip(pairs, numbers, strict=True):
        if not full[pair]:
            continue
        row, pin = int(layout.pair_row[pair]), layout.problem.pins[int(number)]
        price = float(layout.pair_network[pair] + plan.prices.pool[layout.pair_pool[pair]])
        words = f"is held to at most {100 * pin.most:g} %: {pin.sentence}"
        way = (price * float(layout.row_work[row]), pin.engine_id, words)
        found[row] = min(found.get(row, way), way)
    return found
