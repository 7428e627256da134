"""What a reader must know before he believes the verdict: each a sentence with its reason; none is the usual case."""

from headrace.replay.score.comparison import Comparison
from headrace.replay.score.contradiction import by_decisions
from headrace.replay.score.open_loop import open_loops


def cautions(comparison: Comparison, *, closed_loop: bool) -> tuple[str, ...]:
    """Give the sentences.

    Args:
        comparison: of which.
        closed_loop: whether each variant met signals of its own weights.
    """
    found = (by_decisions(each, comparison) for each in comparison.variants)
    contradictions = (each.contradiction for each in found if each is not None and each.contradiction is not None)
    return (*(() if closed_loop else open_loops(comparison)), *contradictions)
