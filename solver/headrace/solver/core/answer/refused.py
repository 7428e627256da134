"""When everything is refused: that it is, and why, counted by reason."""

from collections import Counter
from collections.abc import Iterable

from headrace.solver.core.problem import Exclusion

REFUSED = "100 % refused"


def everything_refused(demand_rps: float, exclusions: Iterable[Exclusion | None], others: str) -> str:
    """Say that all is refused, and how many engines are out for which reason; `others` is said of the rest."""
    reasons = Counter(others if e is None else str(e.reason) for e in exclusions)
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    why = f"of {sum(reasons.values())} engines {told}" if reasons else "there are no engines"
    return f"{REFUSED}: {why}; {demand_rps:.1f} RPS asked for"
