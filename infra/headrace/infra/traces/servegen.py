"""ServeGen's rates: mean requests per second over ten minutes, and how bursty, by model; requests are drawn from them.

    model,t_s,rate_rps,active_clients,cv_weighted
    m-small,0,431.2,22,1.31

Of the model with the most windows; gaps are drawn from a gamma distribution with each window's rate and coefficient of
variation, seeded. That coefficient is a mean over the clients, weighted by their rates: one that sends all it has at an
instant lifts it to 32, 56 or 847, where the median is 2. Gaps of all clients drawn by it would put a window's requests
into a few instants, at five times the fleet's capacity; so it counts up to MAX_CV. There are no lengths and no sessions
in the rates: every request has the same length. A day of a busy model is millions of requests, so a window stands for
`WINDOW_S` of it: the shape of two weeks passes in hours.
Source: Xiang et al., arXiv 2505.09999.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace.infra.traces.lines import csv_rows, each, number
from headrace.infra.traces.request_trace import Floats, RequestTrace
from headrace.schemas.errors import InvalidInputError

WINDOW_S = 10.0
MEAN_RPS = 50.0
"""Rates are scaled to this mean, as any trace is scaled to the fleet anyway."""
MAX_WINDOWS = 2_016
MAX_CV = 3.0
SEED = 1


def read(file: Path | None) -> RequestTrace:
    """Read a file."""
    if file is None:
        raise InvalidInputError("trace", ("no ServeGen rates ship: name their file",))
    rows = each(file, csv_rows(file, ("model", "t_s", "rate_rps", "cv_weighted")), _row)
    if not rows:
        raise InvalidInputError(str(file), ("holds no window",))
    model = min(Counter(row[0] for row in rows).items(), key=lambda found: (-found[1], found[0]))[0]
    windows = sorted(row[1:] for row in rows if row[0] == model)[:MAX_WINDOWS]
    t_s = _drawn(windows)
    ones = np.ones(len(t_s))
    source = f"ServeGen rates of {model}, {file.name}, ten minutes as {WINDOW_S:g} s"
    return RequestTrace("servegen", source, t_s - t_s[0], ones, ones, None)


def _row(row: Mapping[str, Any]) -> tuple[str, float, float, float]:
    # A window without requests has no variation; one that tells none is taken as Poisson.
    cv = number(row, "cv_weighted") if row["cv_weighted"] else 1.0
    return str(row["model"]), number(row, "t_s"), number(row, "rate_rps"), cv


def _drawn(windows: list[tuple[float, float, float]]) -> Floats:
    dice = np.random.default_rng(SEED)
    mean = sum(rate for _, rate, _ in windows) / len(windows)
    if mean <= 0.0:
        raise InvalidInputError("trace", ("every rate is 0",))
    times: list[Floats] = []
    for i, (_, rate, cv) in enumerate(windows):
        scaled = MEAN_RPS * rate / mean
        if scaled <= 0.0:
            continue
        shape = 1.0 / min(max(cv, 0.1), MAX_CV) ** 2
        drawn = dice.gamma(shape, 1.0 / (shape * scaled), size=int(2 * scaled * WINDOW_S) + 16).cumsum()
        times.append(i * WINDOW_S + drawn[drawn < WINDOW_S])
    found = np.concatenate(times)
    if len(found) < 2:
        raise InvalidInputError("trace", ("the rates come to fewer than two requests",))
    return found
