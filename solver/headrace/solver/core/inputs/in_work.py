"""What engines measured, in units of work: signals tell requests, and do not tell of which class.

    x[r,e]   = demand[r] (1 - shed[r]) weight[r,e]      requests of route r that engine e was sent, by the weights that
                                                        stood while it measured
    mean[e]  = sum_r work[r] x[r,e] / sum_r x[r,e]      of one of its requests
    grain[e] = sum_r work[r]^2 x[r,e] / sum_r work[r] x[r,e]

A rate of work is `mean` times a rate of requests, and varies by chance as if all of it came `grain` at a time. A
latency at the profile's output length is one of work 1 already; an end-to-end one is of requests as they came, `mean`
times as long.

The mix is that of the weights and of today's demand: where either just changed, the window holds some of another one.
An engine that was sent nothing by these weights is left as it is. Where all work is 1 nothing is done at all.
"""

from dataclasses import replace

from headrace.schemas.weights import PPM, Snapshot
from headrace.solver.core.problem import Engine, Measured, Mix, Problem, Throughput


def in_work(problem: Problem, stood: Snapshot | None) -> Problem:
    """Give the problem with its engines' measurements in work; as it is where that was done, or nothing stood.

    Args:
        problem: as it was assembled.
        stood: the snapshot by which engines were sent what they measured.
    """
    if problem.in_work or stood is None or all(row.work == 1.0 for row in problem.rows):
        return problem
    mixes = mixes_of(problem, stood)
    engines = tuple(_converted(e, mixes[e.engine_id]) if e.engine_id in mixes else e for e in problem.engines)
    return replace(problem, engines=engines, in_work=True)


def mixes_of(problem: Problem, stood: Snapshot) -> dict[str, Mix]:
    """Give the mix of each engine that the snapshot sends anything of today's demand."""
    asked = {row.route: row for row in problem.rows if row.demand_rps > 0.0}
    sent: dict[str, tuple[float, float, float]] = {}
    for route in stood.routes:
        row = asked.get(route.route)
        if row is None:
            continue
        served_rps = row.demand_rps * (1.0 - route.shed_ratio)
        for target in route.targets:
            rps = served_rps * target.weight_ppm / PPM
            if rps > 0.0:
                count, work, square = sent.get(target.engine_id, (0.0, 0.0, 0.0))
                sent[target.engine_id] = count + rps, work + rps * row.work, square + rps * row.work * row.work
    return {name: Mix(work / count, square / work) for name, (count, work, square) in sent.items()}


def _converted(engine: Engine, mix: Mix) -> Engine:
    return replace(
        engine,
        mix=mix,
        measured=None if engine.measured is None else _measured(engine.measured, mix.mean),
        throughput=None if engine.throughput is None else _throughput(engine.throughput, mix.mean),
    )


def _measured(measured: Measured, mean: float) -> Measured:
    longer = mean if measured.as_they_came else 1.0
    return replace(
        measured,
        rate_rps=measured.rate_rps * mean,
        latency_s=measured.latency_s / longer,
        smoothed_s=measured.smoothed_s / longer,
    )


def _throughput(throughput: Throughput, mean: float) -> Throughput:
    recent = throughput.recent_rps
    return replace(
        throughput,
        recent_rps=None if recent is None else recent * mean,
        window_rps=throughput.window_rps * mean,
    )
