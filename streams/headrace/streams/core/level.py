"""The level of a rate: the mean since its last step, over at most `memory_s`; a step is taken as it is, at once.

    g = dt / min(evidence + dt, memory)      value <- value + g (rate - value)        evidence <- evidence + dt
    step     over the newest k panes, any k of at least 2 up, 5 down:  |mean of the k - level before them|
             > max(share x level, sigmas x sqrt(rate (1 / seconds of the k + 1 / seconds of the level)))
    restart  value = mean of the k panes for which that is furthest from chance, evidence = their seconds

What becomes of a step that is soon taken back is in `taken_back`.

A short memory is quick and noisy, a long one calm and late; with a test for steps it is both quick and calm. A step of
a third of 100 RPS shows in two seconds, one of a sixth in ten; what is smaller than chance explains is averaged away.
One pane alone is no step, so that of a burst half counts. A fall is believed later: traffic pauses, and to plan for too
much for three seconds more costs less than to move it all and back.

The level before the k panes is found by taking them out again, newest first, so nothing more has to be remembered. A
gap in the panes lets evidence fade by its length, so that what comes after a long silence weighs more.

A count that is not a Poisson one (bursts) shows steps that are none: the level is then as noisy as the panes of its
shortest step, and never biased.

Source: the generalised likelihood ratio test for a change in mean (Lorden 1971; Basseville and Nikiforov 1993, ch. 2).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

MS = 1000.0
RISE_PANES = 2
FALL_PANES = 5


class Level(NamedTuple):
    """A rate, how many seconds of evidence it is the mean of, and the end of the newest of them, event time."""

    rps: float
    evidence_s: float
    at_ms: int


class Bounds(NamedTuple):
    """What a level remembers at most, and what a step is above: a share of it, and deviations of a Poisson count."""

    memory_s: float
    share: float
    sigmas: float


class Pane(NamedTuple):
    """The rate over some seconds that end at `end_ms`."""

    rps: float
    length_s: float
    end_ms: int


class Step(NamedTuple):
    """The level that a step ended, up to the last pane before it, and the one that begins with it."""

    before: Level
    after: Level


def begun(pane: Pane) -> Level:
    """Give the level of which nothing more is known than one pane."""
    return Level(pane.rps, pane.length_s, pane.end_ms)


def moved(level: Level | None, pane: Pane, memory_s: float) -> Level:
    """Take a pane into a level; one that is not newer changes nothing."""
    if level is None:
        return begun(pane)
    if pane.end_ms <= level.at_ms:
        return level
    gap_s = max((pane.end_ms - level.at_ms) / MS - pane.length_s, 0.0)
    evidence_s = (
        max(min(level.evidence_s, memory_s) - gap_s, 0.0) + pane.length_s
        if gap_s
        else (level.evidence_s + pane.length_s)
    )
    gain = min(pane.length_s / min(evidence_s, memory_s), 1.0)
    return Level(level.rps + gain * (pane.rps - level.rps), evidence_s, pane.end_ms)


def excess(mean: float, seconds: float, level: float, held_s: float, bounds: Bounds) -> float:
    """Give how far the mean of some seconds is from a level of which `held_s` are known: above 1 it is a step."""
    noise = math.sqrt(max(mean, level) * (1.0 / seconds + 1.0 / held_s))
    bound = max(bounds.share * level, bounds.sigmas * noise)
    return abs(mean - level) / bound if bound > 0.0 else 0.0


def last_step(level: Level, newest_first: Iterable[Pane], bounds: Bounds, from_ms: int | None = None) -> Step | None:
    """Give a level's last step, or None where there is none.

    Args:
        level: with all of these panes taken in.
        newest_first: the panes behind it, without a gap.
        bounds: its memory as it was moved by.
        from_ms: panes that end by then are not in the level; None where all are.
    """
    best, furthest = None, 1.0
    before, evidence_s, total, seconds = level.rps, level.evidence_s, 0.0, 0.0
    memory_s, share, _ = bounds
    held_s = min(memory_s, evidence_s)
    for count, (rps, length_s, end_ms) in enumerate(newest_first, start=1):
        gain = length_s / held_s
        evidence_s -= length_s
        if evidence_s < length_s or gain >= 1.0 or (from_ms is not None and end_ms <= from_ms):
            break
        before = (before - gain * rps) / (1.0 - gain)
        before = max(before, 0.0)
        total += rps * length_s
        seconds += length_s
        recent = total / seconds
        held_s = min(memory_s, evidence_s)
        if count < (RISE_PANES if recent > before else FALL_PANES):
            continue
        if abs(recent - before) <= share * before:
            continue  # no step whatever the noise, as most panes: the hot loop reckons no further
        found = excess(recent, seconds, before, held_s, bounds)
        if found > furthest:
            ended = Level(before, evidence_s, end_ms - round(MS * length_s))
            best, furthest = Step(ended, Level(recent, seconds, level.at_ms)), found
    return best
