"""Policies that steer by latency, played over history: their feedback loop is open, and their score is of that.

live      weights ─► load ─► latency ─► weights          a push is answered, and ends
replay    recorded weights ─► recorded latency ─► weights          it never is, so the policy goes on pushing
"""

from collections.abc import Sequence

from headrace.replay.score.comparison import Compared, Comparison, Word
from headrace.solver.core.policies import steers_by_latency


def open_loops(comparison: Comparison) -> tuple[str, ...]:
    """Give a sentence for those that score worse than the recorded run, and one for the others; none of none."""
    recorded, *others = comparison.variants
    steering = [each for each in others if steers_by_latency(each.score.policy) and not _as_recorded(each)]
    worse = [each for each in steering if _worse(each)]
    better = [each for each in steering if not _worse(each)]
    told = (
        _sentence(worse, recorded, "That the score is bad is of this open loop, and need not be so live"),
        _sentence(
            better, recorded, "That the score is not bad is of this open loop too: with late signals it may swing live"
        ),
    )
    return tuple(sentence for sentence in told if sentence)


def _as_recorded(each: Compared) -> bool:
    """Say whether it came to the recorded weights: then it met the signals of its own."""
    return all(each.told(name).word is Word.SAME for name in ("mean_ms", "unserved_percent", "moved_percent_a_minute"))


def _worse(each: Compared) -> bool:
    return any((each.told(name).difference or 0.0) > 0.0 for name in ("mean_ms", "unserved_percent"))


def _sentence(found: Sequence[Compared], recorded: Compared, judged: str) -> str:
    if not found:
        return ""
    names = " and ".join(each.score.name for each in found)
    policies = dict.fromkeys((recorded.score.policy, *(each.score.policy for each in found)))
    command = "headrace replay simulate " + " ".join(f"--policy {policy}" for policy in policies)
    return (
        f"{names}: steered by latency, and shown the latencies that the weights of {recorded.score.name} caused, which "
        f"never answer to its own: it goes on pushing. {judged}; `{command}` closes the loop."
    )
