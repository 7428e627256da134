"""shed after - shed now <= 0.5 % of the demand, by solving the newest tick again with the override."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override

FORCEABLE = True
SHED_FROM = 0.005
"""Share of the demand: what an override sheds beyond it is too much."""


def broken(stands: Stands, override: Override) -> str | None:  # noqa: ARG001 - a rule's signature
    """Say how much would be shed, and whose."""
    if stands.answer is None:
        return None
    answer, before, after = stands.answer, stands.answer.before, stands.answer.after
    if after.shed_rps - before.shed_rps <= SHED_FROM * max(after.demand_rps, 1e-9):
        return None
    lost: dict[str, float] = {}
    for share in answer.shares:
        lost[share.route] = lost.get(share.route, 0.0) + share.before_rps - share.after_rps
    worst = sorted((route for route in lost if lost[route] > 0.05), key=lambda route: (-lost[route], route))[:3]
    whose = ", ".join(f"{route} loses {lost[route]:.1f}" for route in worst)
    return (
        f"if {' and '.join(answer.edits)}, {after.shed_rps:.1f} of {after.demand_rps:.1f} RPS would be shed, "
        f"{before.shed_rps:.1f} now ({whose})"
    )
