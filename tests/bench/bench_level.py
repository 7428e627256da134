"""The level of a demand beside one that keeps nothing when it steps, and beside an average of three seconds.

    python tests/bench/bench_level.py [--runs 200]

Errors are mean |level / true rate - 1|, %, over the forty seconds from an event: of demand made at 100 RPS, a Poisson
count each second, and of the pause where the loop of the trace that ships joins, at 36 RPS as `bench_stability.py`
plays it, at twenty phases of the second. Traffic came up as that recording began and went down as it ended. Of the
recordings themselves, from end to end, the seconds are told in which the first two levels differ.

`moves` are seconds in which the level moved by more than 3 % of the rate.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from session_traces import mooncake

from headrace.infra.fleet.trace import azure_conversation
from headrace.streams.core.level import Bounds, Pane, last_step, moved
from headrace.streams.core.smoothing import Smoothed, smooth
from headrace.streams.core.taken_back import Followed, followed

BOUNDS = Bounds(30.0, 0.05, 4.0)
WINDOW = 10
RPS, EVENT_S, SEEN_S = 100.0, 45, 40
MADE: Mapping[str, Sequence[tuple[int, float]]] = {
    "steady": (),
    "a step to 140": ((SEEN_S, 1.4),),
    "a step to 120": ((SEEN_S, 1.2),),
    "a step to 80": ((SEEN_S, 0.8),),
    "a step to 60": ((SEEN_S, 0.6),),
    "3 s of 200": ((3, 2.0),),
    "6 s of 140": ((6, 1.4),),
    "9 s of 140": ((9, 1.4),),
    "6 s of 60": ((6, 0.6),),
    "9 s of 60": ((9, 0.6),),
    "5 s of 50, 5 s of 150": ((5, 0.5), (5, 1.5)),
    "6 s of 160, then 120": ((6, 1.6), (SEEN_S, 1.2)),
    "6 s of 160, then 110": ((6, 1.6), (SEEN_S, 1.1)),
    "6 s of 160, then 90": ((6, 1.6), (SEEN_S, 0.9)),
    "6 s of 160, then 80": ((6, 1.6), (SEEN_S, 0.8)),
    "6 s of 50, then 110": ((6, 0.5), (SEEN_S, 1.1)),
    "6 s of 50, then 90": ((6, 0.5), (SEEN_S, 0.9)),
}
"""Demand from the event on, seconds and share of 100 RPS; afterwards 100 again."""

Floats = NDArray[np.float64]


def keeping(panes: Sequence[Pane]) -> Floats:
    """Give the level after each pane."""
    known: Followed | None = None
    levels = list[float]()
    for i, pane in enumerate(panes):
        known = followed(known, pane, reversed(panes[max(0, i + 1 - WINDOW) : i + 1]), BOUNDS)
        levels.append(known.level.rps)
    return np.array(levels)


def plain(panes: Sequence[Pane]) -> Floats:
    """Give the same where a step leaves nothing behind."""
    level = None
    levels = list[float]()
    for i, pane in enumerate(panes):
        level = moved(level, pane, BOUNDS.memory_s)
        step = last_step(level, reversed(panes[max(0, i + 1 - WINDOW) : i + 1]), BOUNDS)
        level = level if step is None else step.after
        levels.append(level.rps)
    return np.array(levels)


def averaged(panes: Sequence[Pane]) -> Floats:
    """Give an average with a time constant of three seconds."""
    known: Smoothed | None = None
    levels = list[float]()
    for pane in panes:
        known = smooth(known, pane.rps, pane.end_ms, 3000.0, 3000.0)
        levels.append(known.value)
    return np.array(levels)


KINDS: Mapping[str, Callable[[Sequence[Pane]], Floats]] = {"keeps": keeping, "keeps nothing": plain, "3 s": averaged}


def panes_of(counts: Floats) -> list[Pane]:
    return [Pane(float(count), 1.0, 1000 * i) for i, count in enumerate(counts, start=1)]


def made(shape: Sequence[tuple[int, float]], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Give a made demand's counts, and its true rates."""
    rates = np.full(EVENT_S + SEEN_S, RPS)
    at = EVENT_S
    for seconds, share in shape:
        rates[at : at + seconds] *= share
        at += seconds
    return rng.poisson(rates).astype(float), rates


def join(rps: float, phase: float) -> tuple[Floats, Floats]:
    """Give the counts around the pause where the trace's loop joins, and the rate; `phase` moves the seconds."""
    gaps = azure_conversation().gaps
    times = phase + np.cumsum(np.roll(gaps, -int(0.7072 * len(gaps)))[: int(250 * rps)]) / rps
    counts = np.bincount(times.astype(int))[155 - EVENT_S : 155 + SEEN_S].astype(float)
    return counts, np.full(len(counts), rps)


def tell(name: str, runs: Sequence[tuple[Floats, Floats]]) -> None:
    """Print one line: errors and moves of each kind of level."""
    cells = ""
    for level in KINDS.values():
        seen = [(level(panes_of(counts)), rates) for counts, rates in runs]
        error = np.mean([np.abs(found[EVENT_S:] / true[EVENT_S:] - 1.0) for found, true in seen])
        moves = np.mean([np.sum(np.abs(np.diff(found[EVENT_S - 1 :])) > 0.03 * true[0]) for found, true in seen])
        cells += f"{100 * error:14.2f}{moves:7.1f}"
    print(f"{name:28}{cells}", flush=True)


def differing(times: Floats) -> str:
    """Say in how many seconds of a recording the first two levels differ by more than 1 %, over ten phases."""
    differ = whole = 0
    for phase in np.linspace(0.0, 1.0, 10, endpoint=False):
        panes = panes_of(np.bincount((times - times[0] + phase).astype(int))[:-1].astype(float))
        one, other = keeping(panes), plain(panes)
        differ, whole = differ + int((np.abs(one - other) > 0.01 * other).sum()), whole + len(panes)
    return f"{differ / 10:.0f} s of {whole / 10:.0f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{'':28}" + "".join(f"{name:>14}" + f"{'moves':>7}" for name in KINDS))
    for name, shape in MADE.items():
        tell(name, [made(shape, rng) for _ in range(asked.runs)])
    tell("the trace's join, 36 RPS", [join(36.0, phase) for phase in np.linspace(0.0, 1.0, 20, endpoint=False)])
    azure = np.cumsum(azure_conversation().gaps)
    recorded = np.array(sorted(request.at_s for request in mooncake()))
    for rps in (5.0, 10.0, 20.0, 36.0, 80.0):
        print(f"azure at {rps:g} RPS: they differ in {differing(azure / rps)}")
        speed = rps * recorded[-1] / len(recorded)
        print(f"mooncake at {rps:g} RPS: they differ in {differing(recorded / speed)}", flush=True)


if __name__ == "__main__":
    main()
