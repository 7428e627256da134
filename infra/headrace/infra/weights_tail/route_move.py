"""What one route's traffic did between two snapshots: how much of it went elsewhere, from which engines to which.

share = 1/2 sum over engines and shedding of |share after - share before|        rps = share x demand after
"""

from dataclasses import dataclass

from headrace.infra.demo.movement import SHED, distance, shares
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import RouteWeights

NAMED_FROM = 0.005
"""A smaller share of the route is not named, unless it is the largest of its side."""
MAX_NAMED = 3
"""So many engines are named on either side; the rest are counted."""


@dataclass(frozen=True, slots=True)
class RouteMove:
    """One route's move. `lost` and `gained` are (engine, share of the route), largest first; SHED is an engine here."""

    route: RouteKey
    share: float
    rps: float
    lost: tuple[tuple[str, float], ...]
    gained: tuple[tuple[str, float], ...]

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that the move touches, those that lost first."""
        return tuple(name for name, _ in (*self.lost, *self.gained) if name != SHED)


def route_move(before: RouteWeights, after: RouteWeights) -> RouteMove:
    """Give what a route's traffic did; both are of the same route."""
    old, new = shares(before), shares(after)
    share = distance(before, after)
    change = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in sorted(old.keys() | new.keys())}
    lost = [(name, -by) for name, by in change.items() if by < 0.0]
    gained = [(name, by) for name, by in change.items() if by > 0.0]
    return RouteMove(
        route=after.route,
        share=share,
        rps=share * after.demand_rps,
        lost=_worth_naming(lost),
        gained=_worth_naming(gained),
    )


def _worth_naming(side: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    ordered = sorted(side, key=lambda part: (-part[1], part[0]))
    return tuple(part for i, part in enumerate(ordered) if i == 0 or part[1] >= NAMED_FROM)


def move_words(move: RouteMove) -> str:
    """Say a move: `41 % (49.6 RPS) from engine-b to engine-c`."""
    return f"{100 * move.share:.0f} % ({move.rps:.1f} RPS) {_side('from', move.lost)} {_side('to', move.gained)}"


def _side(word: str, parts: tuple[tuple[str, float], ...]) -> str:
    if not parts:
        return f"{word} nowhere"
    several = len(parts) > 1
    named = [_name(name) + (f" {100 * share:.0f} %" if several else "") for name, share in parts[:MAX_NAMED]]
    more = f" and {len(parts) - MAX_NAMED} more" if len(parts) > MAX_NAMED else ""
    return f"{word} {', '.join(named)}{more}"


def _name(engine_id: str) -> str:
    return "shedding" if engine_id == SHED else engine_id
