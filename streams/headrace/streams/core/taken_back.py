"""A step that is taken back: demand leaps and falls back, or pauses and goes on, and the level before it was right.

    worth       of the level before a step = min(its evidence, memory) - seconds since its last pane
    kept        it is, while that is more than the evidence of the level since
    taken back  the next step is, where the panes after it would be no step from the level kept, by the step's own test
    level       = (worth x the one kept + sum of those panes) / (worth + their seconds), which is its evidence

Begun anew twice, a level knows two seconds or five, and follows the noise of each pane. The level before the first step
knows up to half a minute, of which the seconds in between say nothing: they fade it, as a silence does.

Nothing is seen later for it. A step is taken at once, as ever; only where the second one leads is asked anew, and that
test looks no further back than the return: what lay between is not in the level. A return to a level that is off by
less than a step is taken for the old one, and found by a later test or averaged, as any change of that size is.

Failure mode: where demand steps to and fro between two levels that are near each other, the first is believed longer.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.streams.core.level import MS, Bounds, Level, Pane, begun, excess, last_step, moved


class Followed(NamedTuple):
    """A level, and what is remembered beside it: one or none of the two.

    `kept` is the level before its last step, while that may still be taken back. `from_ms` is since when the panes are
    in the level without a hole, ms since the epoch, once one was.
    """

    level: Level
    kept: Level | None = None
    from_ms: int | None = None


def followed(before: Followed | None, pane: Pane, newest_first: Iterable[Pane], bounds: Bounds) -> Followed:
    """Take a pane into a level, and let it begin anew at a step, or go on from before a step that is taken back.

    Args:
        before: None where nothing is known.
        pane: the newest; one that is not newer than the level moves nothing.
        newest_first: it and those before it, without a gap.
        bounds: of memory, and of a step.
    """
    if before is None:
        return Followed(begun(pane))
    level, kept = moved(before.level, pane, bounds.memory_s), before.kept
    step = last_step(level, newest_first, bounds, before.from_ms)
    if step is None:
        return Followed(level, _worth_keeping(kept, level, bounds.memory_s), before.from_ms)
    kept = _worth_keeping(kept, step.before, bounds.memory_s)
    after = step.after
    if kept is None:
        return Followed(after, _worth_keeping(step.before, after, bounds.memory_s))
    if excess(after.rps, after.evidence_s, kept.rps, _worth_s(kept, step.before.at_ms, bounds.memory_s), bounds) > 1.0:
        return Followed(after, _worth_keeping(kept, after, bounds.memory_s))
    returned = moved(kept, Pane(after.rps, after.evidence_s, after.at_ms), bounds.memory_s)
    return Followed(returned, from_ms=step.before.at_ms)


def _worth_s(kept: Level, at_ms: int, memory_s: float) -> float:
    return min(kept.evidence_s, memory_s) - (at_ms - kept.at_ms) / MS


def _worth_keeping(kept: Level | None, since: Level, memory_s: float) -> Level | None:
    """Give the level kept, or None once no more is known of it than of the one since."""
    worth = kept is not None and _worth_s(kept, since.at_ms, memory_s) > since.evidence_s
    return kept if worth else None
