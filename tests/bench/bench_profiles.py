"""Latency profiles against the data they are fitted to, and against data they have not seen.

    python tests/bench/bench_profiles.py [CSV]          a table in the silicon form; the one that ships where left out

Closed-loop curves, one replica each. The error is |fitted - measured| / measured end-to-end time at the measured rate,
over all steady stages of all curves, those of refused curves too:

    fitted       every stage was fitted
    left out     each stage predicted by a fit, and a pool's shape, that were made without it
    ... inside   the same, but for the first and last stage of a curve, where a prediction is an extrapolation
    new curve    the same, the shape from the other curves of the pool only: an engine that joins a known pool
    no pool      the same, each curve a pool of its own: an engine like no other
    half         every second stage (and the last) fitted, the others predicted: a load test of three or four stages

Open loop: the wall of each variant, and the requests in service there, which no fit was told (vLLM's limit is 128).
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headrace.infra.load_tests.csv_table import read_csv
from headrace.infra.load_tests.forms import load_tests
from headrace.solver.core.profile.convex_fit import Points
from headrace.solver.core.profile.fit_profile import (
    FittedProfile,
    RefusedProfile,
    fit_profiles,
    regress,
    relative_errors,
    steady_points,
)
from headrace.solver.core.profile.load_test import LoadTest
from headrace.solver.core.profile.pooled_shape import shape_losses, shape_of
from headrace.solver.core.profile.wall import Wall, find_wall

Floats = npt.NDArray[np.float64]
GOALS = {"fitted": (0.03, 0.10), "left out": (0.08, 0.25)}


def say(name: str, errors: Sequence[Floats]) -> None:
    size = np.abs(np.concatenate(errors))
    median, p75, p90, p95 = np.quantile(size, [0.5, 0.75, 0.9, 0.95])
    line = f"  {name:20} {len(size):6} {median:8.1%} {p75:8.1%} {p90:8.1%} {p95:8.1%}"
    if name in GOALS:
        line += "   goal {:.0%} and {:.0%}: {}".format(
            *GOALS[name], "met" if median <= GOALS[name][0] and p90 <= GOALS[name][1] else "MISSED"
        )
    print(line)


def left_out(points: Points, wall: Wall, others: Sequence[Floats], own: Callable[[Points], list[Floats]]) -> Floats:
    errors = np.zeros(len(points.load))
    for i in range(len(errors)):
        rest = points.without(i)
        shape = shape_of([*others, *own(rest)])
        errors[i] = relative_errors(regress(rest, wall.capacity_rps, shape), points)[i]
    return errors


def half(points: Points, wall: Wall, others: Sequence[Floats]) -> Floats:
    hidden = [i for i in range(1, len(points.load) - 1) if i % 2 == 1]
    rest = points.without(hidden)
    shape = shape_of([*others, shape_losses(rest, wall.capacity_rps)])
    return relative_errors(regress(rest, wall.capacity_rps, shape), points)[hidden]


def silicon(tests: Sequence[LoadTest]) -> None:
    outcomes = fit_profiles(tests)
    refused = [outcome for outcome in outcomes if isinstance(outcome, RefusedProfile)]
    fitted = [outcome for outcome in outcomes if isinstance(outcome, FittedProfile)]
    print(f"closed loop: {len(tests)} curves in {len({test.pool for test in tests})} pools, {len(refused)} refused;")
    print(f"the wall was reached in {sum(fit.wall.reached for fit in fitted)}")
    print(f"  {'':20} {'stages':>6} {'median':>8} {'p75':>8} {'p90':>8} {'p95':>8}")
    say("fitted", [outcome.errors for outcome in outcomes])
    say("left out", [outcome.left_out for outcome in outcomes])
    say("left out, inside", [outcome.left_out[1:-1] for outcome in outcomes])
    walls = [find_wall(test.stages) for test in tests]
    usable = [i for i, wall in enumerate(walls) if len(wall.steady) > 2]
    points = {i: steady_points(walls[i]) for i in usable}
    losses = {i: shape_losses(points[i], walls[i].capacity_rps) for i in usable}
    others = {i: [losses[j] for j in usable if j != i and tests[j].pool == tests[i].pool] for i in usable}
    pooled = [i for i in usable if others[i]]
    say("new curve", [left_out(points[i], walls[i], others[i], lambda _: []) for i in pooled])
    own = {i: (lambda rest, i=i: [shape_losses(rest, walls[i].capacity_rps)]) for i in usable}
    say("no pool", [left_out(points[i], walls[i], (), own[i]) for i in usable])
    say("half", [half(points[i], walls[i], others[i]) for i in usable])
    say("published, fitted", [fit.errors for fit in fitted])
    say("published, left out", [fit.left_out for fit in fitted])


def open_loop() -> None:
    print("open loop, one H100: 101 to 103 rps is what the vllm variant completed when it was offered more")
    for outcome in fit_profiles(load_tests(read_csv("inference_perf_h100_llama8b"), {})):
        if isinstance(outcome, RefusedProfile):
            print(f"  refused {outcome.labels.profile_id}: {'; '.join(outcome.reasons)}")
            continue
        p = outcome.profile
        in_service = p.capacity_rps * (p.ttft_s[-1] + p.output_tokens * p.tbot_s[-1])
        print(
            f"  {p.profile_id:52} wall {p.capacity_rps:6.1f} rps, {in_service:4.0f} in service there; "
            f"error {p.fit_error_median:.1%} median {p.fit_error_p90:.1%} p90"
        )


if __name__ == "__main__":
    silicon(load_tests(read_csv(sys.argv[1] if len(sys.argv) > 1 else "silicon_curves_agg"), {}))
    open_loop()
