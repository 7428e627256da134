"""w_i <- w_i (1 + clip(kp (e_i - e_i before) + ki dt e_i, +-d)), renormalised: a PI controller in its velocity form.

    e     = 1 - score / average of the pools, score = smoothed latency + round trip of the traffic it has
    kp,ki = pid_gain, pid_integral per second; d = pid_max_step: the most a weight changes in one tick
    slow start: a pool that had no weight begins at `START` of its share by capacity and grows by d a tick

The weights are the integral, so nothing winds up; what an error was is remembered in the snapshot. The same for every
cluster: a pool is slow or it is not, whoever asks.

Oscillates when the signal is delayed, like the P controller, a little later: the difference term looks ahead by as much
as the error has changed, and takes noise for change.
"""

import numpy as np

from headrace.schemas.weights import PPM
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.feedback import pool_latency_ms, previous_shares, stepped
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Plan, by_shares
from headrace.solver.settings import SolverSettings

START = 0.1
STEERS_BY_LATENCY = True


def plan(layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:  # noqa: ARG001 - a policy's signature
    """Push each pool's weights by its error and by how it changes."""
    before = previous_shares(layout, START)
    error = _pool_errors(layout, before)
    last = _last_errors(layout)
    change = np.where(np.isfinite(last), error - last, 0.0)
    push = settings.pid_gain * change + settings.pid_integral * settings.period_ms / MS * error
    step = np.clip(push, -settings.pid_max_step, settings.pid_max_step)
    share = stepped(layout, before, step[layout.pair_pool])
    return by_shares(layout, "PID", share, "by measured latency and how it changes").with_errors(error)


def _pool_errors(layout: Layout, share: Floats) -> Floats:
    """Give each pool's error, (G,), 0 where it has no score."""
    flow = share * layout.demand[layout.pair_row]
    load = layout.per_pool(flow)
    travel = np.divide(layout.per_pool(flow * layout.pair_network), load, out=np.zeros_like(load), where=load > 0.0)
    score = pool_latency_ms(layout) + travel
    known = np.isfinite(score) & (load > 0.0)
    if not known.any():
        return np.zeros_like(load)
    mean = float(score[known] @ load[known]) / float(load[known].sum())
    return np.where(known, 1.0 - np.where(known, score, 0.0) / mean, 0.0)


def _last_errors(layout: Layout) -> Floats:
    """Give each pool's error at the previous tick, (G,), NaN where none is remembered."""
    last = np.full(len(layout.pools), np.nan)
    for g, pool in enumerate(layout.pools):
        found = layout.remembered.get(layout.engines[pool.engines[0]].engine_id)
        if found is not None and found.score_error_ppm is not None:
            last[g] = found.score_error_ppm / PPM
    return last
