"""What an edit would come to, for people: what is shed, two tables and the means. Shares are of what is asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.infra.what_if.answer import ShareChange, ShedChange, Totals, WhatIf
from headrace.schemas.weights import PPM

LOOK_FROM = 0.0005
LOOK_FROM_RPS = 0.05
"""Shares that change by less, in both, are counted, not told."""
MAX_SHED = 8
MAX_ROWS = 40


@dataclass(frozen=True, slots=True)
class _Row:
    route: str
    name: str
    before_share: float
    after_share: float
    before_rps: float
    after_rps: float

    @property
    def rps(self) -> float:
        return self.after_rps - self.before_rps


def what_if_lines(found: WhatIf) -> tuple[str, ...]:
    """Give the lines."""
    return tuple(_lines(found))


def _lines(found: WhatIf) -> Iterator[str]:
    yield f"what if {'; '.join(found.edits)}; against version {found.version}. Nothing is changed by asking."
    yield from found.notes
    yield from _shed(found)
    yield ""
    shares = _rows(found)
    moved = [r for r in shares if abs(r.after_share - r.before_share) >= LOOK_FROM or abs(r.rps) >= LOOK_FROM_RPS]
    rows = [
        (r.route, r.name, _percent(r.before_share), _percent(r.after_share), f"{r.after_rps:.1f}", f"{r.rps:+.1f}")
        for r in moved[:MAX_ROWS]
    ]
    yield from _table(("route", "engine", "of demand", "after", "RPS", "change"), rows, left=2)
    yield from _rest(len(moved) - MAX_ROWS, "shares")
    yield f"{len(shares) - len(moved)} of {len(shares)} shares stay" if moved else "nothing moves"
    yield ""
    loads = [
        (
            e.engine_id,
            f"{e.before_load_rps:.1f}/{e.before_capacity_rps:.1f}",
            f"{e.after_load_rps:.1f}/{e.after_capacity_rps:.1f}",
            _load(e.before_load_rps, e.before_capacity_rps),
            _load(e.after_load_rps, e.after_capacity_rps),
        )
        for e in found.engines
        if abs(e.after_load_rps - e.before_load_rps) > 0.05 or e.after_capacity_rps != e.before_capacity_rps
    ]
    yield from _table(("engine", "RPS before", "after", "load", "after"), loads[:MAX_ROWS], left=1)
    yield from _rest(len(loads) - MAX_ROWS, "engines")
    if loads:
        yield ""
    yield f"before  {_words(found.before)}"
    yield f"after   {_words(found.after)}"
    ticks = f"{found.ticks} tick{'' if found.ticks == 1 else 's'}"
    settled = f"settled after {ticks}" if found.settled else f"still moving after {ticks}"
    # The last tick's own sentence speaks of what that tick alone moved, which is nothing once it has settled.
    served = f"{_served(found.after):.1f} RPS served"
    yield f"{found.rerouted_rps:.1f} of {served} go to another engine than before; {settled}"
    if not found.inputs_proved:
        yield "its inputs are not proved to be those that the version was made from"


def _shed(found: WhatIf) -> Iterator[str]:
    """Say whose requests are shed, before and after: that is the first thing to know."""
    before, after = found.before.shed_rps, found.after.shed_rps
    if max(before, after) < LOOK_FROM_RPS:
        return
    whose = ", ".join(
        f"{s.route} {s.before_rps:.1f} -> {s.after_rps:.1f} of {s.after_demand_rps:.1f}"
        for s in sorted(found.sheds, key=lambda s: (-max(s.after_rps, s.before_rps), s.route))[:MAX_SHED]
        if max(s.before_rps, s.after_rps) >= LOOK_FROM_RPS
    )
    word = "as before" if abs(after - before) < LOOK_FROM_RPS else "more" if after > before else "less"
    yield f"shed, {word}: {before:.1f} -> {after:.1f} RPS: {whose}"


def _rows(found: WhatIf) -> list[_Row]:
    """Give each engine's part of each route, and what is shed of it, as shares of what is asked for."""
    served: dict[str, list[float]] = {}
    for s in found.shares:
        both = served.setdefault(s.route, [0.0, 0.0])
        both[0] += s.before_rps
        both[1] += s.after_rps
    shed = {s.route: s for s in found.sheds}
    rows = [_row(s, served[s.route], shed.get(s.route)) for s in found.shares]
    rows += [_Row(s.route, "(shed)", *_shares_of(s), s.before_rps, s.after_rps) for s in found.sheds]
    # Parentheses sort before letters; what is shed stands under the engines.
    return sorted(rows, key=lambda row: (row.route, row.name == "(shed)", row.name))


def _row(share: ShareChange, served: Sequence[float], shed: ShedChange | None) -> _Row:
    was, now = (0.0, 0.0) if shed is None else (shed.before_rps, shed.after_rps)
    before = share.before_ppm / PPM * _part(served[0], served[0] + was)
    after = share.after_ppm / PPM * _part(served[1], served[1] + now)
    return _Row(share.route, share.engine_id, before, after, share.before_rps, share.after_rps)


def _shares_of(shed: ShedChange) -> tuple[float, float]:
    before = shed.before_rps / shed.before_demand_rps if shed.before_demand_rps > 0.0 else 0.0
    return before, shed.after_rps / shed.after_demand_rps if shed.after_demand_rps > 0.0 else 0.0


def _part(served: float, asked: float) -> float:
    """Give the share that is served; where nothing is asked for a weight is a share all the same."""
    return served / asked if asked > 0.0 else 1.0


def _served(totals: Totals) -> float:
    return totals.demand_rps - totals.shed_rps


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    for row in (heads, *rows):
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _rest(number: int, what: str) -> Iterator[str]:
    if number > 0:
        yield f"and {number} more {what} (--json has all)"


def _words(totals: Totals) -> str:
    over = f", {totals.overloaded_rps:.1f} RPS above capacity" if totals.overloaded_rps > 0.05 else ""
    return (
        f"mean {totals.mean_ms:.1f} ms = {totals.network_ms:.1f} network + {totals.engine_ms:.1f} engine; "
        f"{totals.demand_rps:.1f} RPS asked, {totals.capacity_rps:.1f} capacity, {totals.shed_rps:.1f} shed{over}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _load(load: float, capacity: float) -> str:
    return f"{100 * load / capacity:.0f} %" if capacity > 0.0 else "-"
