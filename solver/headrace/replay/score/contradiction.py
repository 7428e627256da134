"""Where profiles and single decisions say opposite things of a variant: by how much, why, and which to believe of what.

    by profiles     mean of the variant less that of the recorded one: all traffic moves, and makes its own load
    by decisions    SNIPS of the variant less SNIPS of the recorded weights, +- 1.96 standard errors: each request alone
    contradiction   the two have opposite signs, each beyond its interval (a short run's score has none)

Of a simulation what its users met stands in the place of the profiles.

The errors of the two estimates are taken as independent; both are of the same choices, so the interval is rather wide.
What a decision cost holds the load that the recorded weights made. So the decisions are right about a few requests, and
about all of them only where the variant would load the engines as the recorded weights did.
"""

import math
from dataclasses import dataclass

from headrace.replay.score.calibration import Agreement
from headrace.replay.score.comparison import Compared, Comparison
from headrace.replay.score.interval import Interval
from headrace.replay.score.lead import lead_of
from headrace.replay.score.off_policy import OffPolicyEstimate
from headrace.replay.score.sums import Of
from headrace.replay.score.told_apart import by_mean
from headrace.replay.score.variant_score import VariantScore

SIGMAS = 1.96
NEAR = 0.05
"""Mean difference of engines' loads up to which recorded latencies are about those that the variant would have met."""


@dataclass(frozen=True, slots=True)
class ByDecisions:
    """A variant less the recorded weights, ms, by single decisions; a sentence where the profiles say the opposite."""

    difference_ms: float
    interval: Interval
    contradiction: str | None


def by_decisions(each: Compared, comparison: Comparison) -> ByDecisions | None:
    """Hold a variant's estimate against that of the recorded weights; None where one of the two is missing."""
    recorded = comparison.variants[0]
    ours, theirs = each.off_policy, recorded.off_policy
    if each is recorded or not isinstance(ours, OffPolicyEstimate) or not isinstance(theirs, OffPolicyEstimate):
        return None
    difference = ours.snips_ms - theirs.snips_ms
    wide = SIGMAS * math.hypot(ours.error_ms, theirs.error_ms)
    between = Interval(difference - wide, difference + wide)
    lead = lead_of(comparison)
    scored = each.told(lead.mean).difference
    opposite = scored is not None and between.leaves_out_zero and difference * scored < 0.0
    if scored is None or not opposite or by_mean(each, comparison) is not None:
        return ByDecisions(difference, between, None)
    said = f"{each.score.name} against {recorded.score.name}: {scored:+,.0f} ms {lead.by}, but "
    said += f"{difference:+,.0f} ms by single decisions ({between.low:+,.0f} to {between.high:+,.0f}; "
    return ByDecisions(difference, between, said + _overlap(ours) + _why(each, comparison))


def load_apart(one: VariantScore, other: VariantScore) -> float | None:
    """Give how far loads are apart, in the mean over time and engines, 1 is a whole engine; None where unknown."""
    theirs = dict(other.bins)
    place = {engine: i for i, engine in enumerate(other.engines)}
    total, count = 0.0, 0.0
    for at_ms, each in one.bins:
        if at_ms not in theirs:
            continue
        loads = theirs[at_ms].load
        for i, engine in enumerate(one.engines):
            mine = float(each.load[i]) if i < len(each.load) else 0.0
            j = place.get(engine, len(loads))
            total += abs(mine - (float(loads[j]) if j < len(loads) else 0.0))
        count += len(one.engines) * float(each.sums[Of.SECONDS])
    return total / count if count else None


def _overlap(found: OffPolicyEstimate) -> str:
    effective = f"{found.effective:,.0f} effective of {found.choices:,} choices"
    return f"{effective}, {found.unsupported:.1%} of its traffic without any). "


def _why(each: Compared, comparison: Comparison) -> str:
    recorded = comparison.variants[0]
    if comparison.met:
        return (
            f"Each decision was answered under the load that {recorded.score.name} made, in which the queues of "
            f"{each.score.name} are not: believe what its users met."
        )
    apart = load_apart(each.score, recorded.score)
    if apart is not None and apart <= NEAR:
        return (
            f"Engines would have been loaded as they were ({apart:.0%} of their capacity apart in the mean), so the "
            "decisions were answered as they would be: believe them, and fit the profiles anew."
        )
    by = "" if apart is None else f", by {apart:.0%} of an engine's capacity in the mean"
    return (
        f"Each decision was answered under the load that {recorded.score.name} made, in which the queues of "
        f"{each.score.name} are not; it would have loaded the engines otherwise{by}. {_advice(comparison)}"
    )


def _advice(comparison: Comparison) -> str:
    advice = "Believe the profiles of moving all traffic, the decisions of a few requests sent that way"
    if comparison.calibration.agreement is Agreement.AGREES:
        return f"{advice}."
    return f"{advice}; and since the profiles are not known to agree with this fleet, try a small share first."
