"""Measured times that no curve fits which rises ever more steeply with load: they fall, or they rise ever less.

    misfit = mean over the stages of |best such curve / measured - 1|, of TTFT and of TBOT, each by itself

What an engine makes a request wait grows with its load, and ever more so; times that do not are most likely of other
loads than their rows say, or of other work, or of a start that was not warmed up. The fit is of such a curve whatever
was measured, and is least off in the end-to-end time, in which one part may hide behind the other.

    falls     the best curve that never falls (least squares of logarithms) is half as far off, or more
    concave   else: it rises, and ever less

A few percent are noise. Of the curves that ship 19 of 448 parts are beyond `LEAST`, and half below 1 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.solver.core.profile.convex_fit import Points, huber_nnls
from headrace.solver.core.profile.hull import lower_hull

Floats = npt.NDArray[np.float64]

LEAST = 0.1
"""Misfit from which a part is told of."""
FALLS = 0.5
NEGLIGIBLE = 0.001
"""Share of the end-to-end time below which a part is none: of one token there is no time between tokens."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """One part, TTFT or TBOT, that no rising convex curve fits, by `size`, a relative error.

    `at` is where it shows most, (load, seconds) each: of one that falls the two stages between which it does; else the
    stage that lies highest above the line between two others, and these.
    """

    part: str
    falls: bool
    size: float
    at: tuple[tuple[float, float], ...]


def misfits(points: Points) -> Iterator[Misfit]:
    """Give the parts that no such curve fits, of at least two points; nothing where both are fitted."""
    order = np.argsort(points.load, kind="stable")
    load, whole = points.load[order], points.e2e_s[order]
    for part, times, tokens in (("TTFT", points.ttft_s, np.ones(len(load))), ("TBOT", points.tbot_s, points.tokens)):
        seconds = times[order]
        if bool((seconds * tokens[order] < NEGLIGIBLE * whole).all()):
            continue
        size = _off_convex(load, seconds)
        if size < LEAST:
            continue
        fall = _steepest_fall(load, seconds)
        if fall and _off_rising(seconds) >= FALLS * size:
            yield Misfit(part, falls=True, size=size, at=fall)
        elif bulge := _highest_bulge(load, seconds):
            yield Misfit(part, falls=False, size=size, at=bulge)


def misfit_words(points: Points, capacity_rps: float) -> list[str]:
    """Say which times do not rise ever more with load, and where it shows most, in ms and requests a second."""
    said: list[str] = []
    for misfit in misfits(points):
        first, *others = [f"{seconds * 1000:.4g} ms at {load * capacity_rps:.4g} rps" for load, seconds in misfit.at]
        if misfit.falls:
            how = f"falls as load grows, from {first} to {others[0]}"
        else:
            (load, seconds), (from_load, from_s), (to_load, to_s) = misfit.at
            line_s = from_s + (load - from_load) / (to_load - from_load) * (to_s - from_s)
            above = seconds / line_s - 1.0
            how = f"rises ever less: {first} is {above:.0%} above the line from {others[0]} to {others[1]}"
        said.append(
            f"{misfit.part} {how}; the nearest curve that rises ever more, as the fitted one does, is "
            f"{misfit.size:.0%} off on average: are these the loads of these rows?"
        )
    return said


def _off_convex(load: Floats, seconds: Floats) -> float:
    hinges = np.maximum(load[:, None] - load[None, :-1], 0.0)
    columns = np.hstack((np.ones((len(load), 1)), load[:, None], hinges)) / seconds[:, None]
    best, _ = huber_nnls(columns, np.ones(len(load)))
    return float(np.abs(columns @ best - 1.0).mean())


def _off_rising(seconds: Floats) -> float:
    """Pool adjacent violators: runs that fall are replaced by their mean until none does."""
    runs: list[tuple[float, int]] = []
    logarithms: list[float] = np.log(seconds).tolist()
    for value in logarithms:
        mean, count = value, 1
        while runs and runs[-1][0] >= mean:
            before, size = runs.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        runs.append((mean, count))
    best: Floats = np.exp(np.repeat([mean for mean, _ in runs], [count for _, count in runs]))
    return float(np.abs(best / seconds - 1.0).mean())


def _steepest_fall(load: Floats, seconds: Floats) -> tuple[tuple[float, float], ...]:
    later = load[None, :] > load[:, None]
    ratio = np.where(later, seconds[:, None] / seconds[None, :], 0.0)
    first, last = divmod(int(np.argmax(ratio)), len(load))
    return _at(load, seconds, first, last) if ratio[first, last] > 1.0 else ()


def _highest_bulge(load: Floats, seconds: Floats) -> tuple[tuple[float, float], ...]:
    x, y = lower_hull(load, seconds)
    above: Floats = seconds / np.interp(load, x, y)
    highest = int(np.argmax(above))
    if above[highest] <= 1.0 or len(x) < 2:
        return ()
    end = int(np.count_nonzero(x <= load[highest]))
    left, right = max(min(end, len(x) - 1) - 1, 0), min(end, len(x) - 1)
    return (*_at(load, seconds, highest), *_at(x, y, left, right))


def _at(load: Floats, seconds: Floats, *places: int) -> tuple[tuple[float, float], ...]:
    return tuple((float(load[i]), float(seconds[i])) for i in places)
