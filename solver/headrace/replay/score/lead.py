"""Which numbers a comparison is judged by: what simulated users met, where there are any; else the profiles' score."""

from dataclasses import dataclass

from headrace.replay.score.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Lead:
    """Names of the mean, its p99, and what went unserved; `by` says in words what they are told by."""

    mean: str
    p99: str
    unserved: str
    by: str


SCORED = Lead("mean_ms", "p99_ms", "unserved_percent", "by the profiles")
MET = Lead("met_mean_ms", "met_p99_ms", "met_unserved_percent", "for the simulated users")


def lead_of(comparison: Comparison) -> Lead:
    """Give what a comparison is judged by."""
    return MET if comparison.met else SCORED
