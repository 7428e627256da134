"""Can a variant be told apart from the recorded one: by what is unserved, by its mean, by chance, by the profiles?

too short    fewer blocks of time than an interval needs: nothing is told apart
other time   a variant that stopped earlier, or began later, met other traffic
told apart   means differ by half a percent or more, the difference's 95 % interval leaves out 0, and it keeps its
             sign with profiles that are off (of which what simulated users met is free)
"""

from headrace.replay.score.comparison import Compared, Comparison
from headrace.replay.score.lead import lead_of
from headrace.replay.score.sums import Of, end_to_end_s, unserved_percent
from headrace.replay.score.variant_score import WorldScore

TOLERATED_PERCENT = 0.1
"""Of all requests: how much more may be unserved before a lower mean counts for nothing."""
OTHER_TIME = 0.05
"""Scored times that differ by more are of other traffic."""
RESOLUTION_PERCENT = 0.5
"""Means that differ by less are not told apart: what the score leaves out is more."""


def less_unserved(one: Compared, other: Compared, comparison: Comparison) -> bool:
    """Say whether one variant leaves less unserved than another, beyond what is tolerated."""
    unserved = lead_of(comparison).unserved
    left = [c.told(unserved).value or 0.0 for c in (one, other)]
    return left[0] < left[1] - TOLERATED_PERCENT


def alike(each: Compared, comparison: Comparison) -> str | None:
    """Say why a variant's mean cannot be told apart from the recorded one's; None where it can."""
    return too_short(comparison) or other_time(each, comparison) or by_mean(each, comparison)


def by_mean(each: Compared, comparison: Comparison) -> str | None:
    """Say the same of the mean alone, however long the run."""
    recorded = comparison.variants[0]
    lead = lead_of(comparison)
    mean, was = each.told(lead.mean), recorded.told(lead.mean)
    if mean.value is None or not was.value:
        return None
    difference = mean.value - was.value
    between = mean.difference_interval
    if difference == 0.0:
        return "they are equal"
    if abs(difference) < RESOLUTION_PERCENT / 100.0 * was.value:
        return f"{100.0 * difference / was.value:+.2f} %, and below {RESOLUTION_PERCENT:g} % nothing is told apart"
    if between is not None and not between.leaves_out_zero:
        return f"not told apart from chance: {between.low:+.1f} to {between.high:+.1f} ms"
    if comparison.met:
        return None
    better, worse = (each.score, recorded.score) if difference < 0.0 else (recorded.score, each.score)
    if _turns(better.slower, worse.slower) or _turns(better.faster, worse.faster):
        error = f"{100.0 * comparison.settings.profile_error:.0f} %"
        return f"{difference:+.1f} ms, but the other way round if profiles are {error} slower or faster"
    return None


def too_short(comparison: Comparison) -> str | None:
    """Say why no difference at all can be told, where the run is too short for an interval."""
    count, seconds = comparison.blocks
    fewest = comparison.settings.fewest_blocks
    if count >= fewest:
        return None
    return f"{count} blocks of {seconds:g} s; at least {fewest} are needed, which are {fewest * seconds:,.0f} s"


def other_time(each: Compared, comparison: Comparison) -> str | None:
    """Say why a variant cannot be compared that was played over another time than the recorded one."""
    ours, theirs = (float(c.score.sums[Of.SECONDS]) for c in (each, comparison.variants[0]))
    if abs(ours - theirs) <= OTHER_TIME * max(ours, theirs):
        return None
    return f"it was played over {ours:,.0f} s, and not over the same {theirs:,.0f} s"


def _turns(better: WorldScore, worse: WorldScore) -> bool:
    """Say whether the better one is the worse where profiles are off; not where the other is fast by refusing more."""
    means = end_to_end_s(better.sums), end_to_end_s(worse.sums)
    if means[0] is None or means[1] is None or means[0] <= means[1]:
        return False
    return unserved_percent(better.sums) >= unserved_percent(worse.sums) - TOLERATED_PERCENT
