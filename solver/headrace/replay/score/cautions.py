"""What a reader must know before he believes the verdict: each a sentence with its reason; none is the usual case."""

from headrace.replay.score.comparison import Comparison
from headrace.replay.score.contradiction import by_decisions


def cautions(comparison: Comparison) -> tuple[str, ...]:
    """Give the sentences, variant by variant."""
    found = (by_decisions(each, comparison) for each in comparison.variants)
    return tuple(each.contradiction for each in found if each is not None and each.contradiction is not None)
