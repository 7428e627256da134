"""What a reader must know before he believes the verdict: each a sentence with its reason; none is the usual case."""

from headrace.replay.core.instants import instant
from headrace.replay.score.comparison import Comparison
from headrace.replay.score.contradiction import by_decisions
from headrace.replay.score.open_loop import open_loops
from headrace.replay.score.variant_score import VariantScore


def cautions(comparison: Comparison, *, closed_loop: bool) -> tuple[str, ...]:
    """Give the sentences.

    Args:
        comparison: of which.
        closed_loop: whether each variant met signals of its own weights.
    """
    changed = () if closed_loop else _changed(comparison.variants[0].score)
    found = (by_decisions(each, comparison) for each in comparison.variants)
    contradictions = (each.contradiction for each in found if each is not None and each.contradiction is not None)
    return (*changed, *(() if closed_loop else open_loops(comparison)), *contradictions)


def _changed(recorded: VariantScore) -> tuple[str, ...]:
    """Say where the recorded policy or its settings changed within the range."""
    if len(recorded.policies) < 2:
        return ()
    began, *changes = recorded.policies
    told = ", ".join(f"{policy} from {instant(at_ms)}" for at_ms, policy in changes)
    sentence = (
        f"The policy of {recorded.name} or its settings changed within the range: {began[1]}, {told}. Its numbers are "
        "of all of them together; variants and the list of settings begin from the first."
    )
    return (sentence,)
