"""A trace as the arrivals of a fleet's clusters, in its own time: bursts and swings last as long as they did.

    rate     the trace's requests are repeated, or thinned, until their mean rate is what is wanted; the k copies of a
             conversation begin within k seconds of it, so that chance is as large in a second as it was, relative to
             k times the rate: more users are not more in step, what they share is the swing over minutes
    cluster  a conversation belongs to one cluster, drawn in proportion to the clusters' rates
    lengths  scaled, over the run, to the mean that the engines' capacity was measured with: a capacity in requests per
             second means nothing at another length
    sessions of a trace without any: a request continues, four times in five, one of the last half minute's

A trace that is shorter than the run begins again at its end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from headrace.infra.fleet.scenario import ClusterSpec, Scenario, Tokens
from headrace.infra.fleet.trace import OPENS_SESSION, Arrival
from headrace.infra.traces.request_trace import Floats, Ints, RequestTrace
from headrace.schemas.errors import InvalidInputError

MAX_JITTER_S = 120.0
TURN_S = 30.0
MAX_REQUESTS = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """One cluster's requests: times from the run's begin, lengths relative to the mean, session names."""

    t_s: Floats
    inputs: Floats
    outputs: Floats
    sessions: Sequence[str]


def with_trace(scenario: Scenario, trace: RequestTrace, load: float, seconds: float, seed: int) -> Scenario:
    """Give the scenario with a trace's arrivals.

    Args:
        scenario: the fleet; its clusters keep their shares of the traffic.
        trace: when requests came.
        load: mean demand as a share of the fleet's capacity.
        seconds: how long the arrivals last.
        seed: of the draws.

    Raises:
        InvalidInputError: that would be more than twenty million requests.
    """
    capacity = sum(setup.replicas * setup.curve.capacity_rps for setup in scenario.engines)
    rate = load * capacity
    if rate * seconds > MAX_REQUESTS:
        told = f"{rate:.0f} RPS for {seconds:.0f} s are {rate * seconds:,.0f} requests; at most {MAX_REQUESTS:,}"
        raise InvalidInputError("simulation", (told,))
    total = sum(cluster.rate_rps for cluster in scenario.clusters)
    clusters = tuple(replace(c, rate_rps=rate * c.rate_rps / total) for c in scenario.clusters)
    expected = _expected(trace, clusters, seconds, np.random.default_rng(seed))
    return replace(scenario, clusters=clusters, arrivals=_Arrivals(expected))


def answers_within(trace: RequestTrace, seconds: float) -> Floats:
    """Give the output tokens of the trace's requests that fall into a run: a part of a trace spreads as it does."""
    return trace.output_tokens[_repeated_in_time(trace, seconds)[1]]


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """`Scenario.arrivals`: a value, so that a scenario can be sent to another process."""

    expected: Mapping[str, Expected]

    def __call__(self, cluster: ClusterSpec, tokens: Tokens, dice: Generator) -> Iterator[Arrival]:  # noqa: ARG002 - drawn before
        found, before = self.expected[cluster.name], 0.0
        inputs = np.maximum(1, np.rint(found.inputs * tokens[0])).astype(np.int64).tolist()
        outputs = np.maximum(1, np.rint(found.outputs * tokens[1])).astype(np.int64).tolist()
        for i, at_s in enumerate(found.t_s.tolist()):
            # A gap is told at rate 1: the gateway divides it by its rate, and by its surge.
            yield Arrival((at_s - before) * cluster.rate_rps, found.sessions[i], inputs[i], outputs[i])
            before = at_s


def _expected(
    trace: RequestTrace, clusters: Sequence[ClusterSpec], seconds: float, dice: Generator
) -> dict[str, Expected]:
    rate = sum(cluster.rate_rps for cluster in clusters)
    t_s, index = _repeated_in_time(trace, seconds)
    copies = rate / (len(t_s) / seconds)
    counts = np.floor(copies) + (dice.random(len(t_s)) < copies % 1.0)
    repeated = np.repeat(np.arange(len(t_s)), counts.astype(np.int64))
    first = np.repeat(np.cumsum(counts) - counts, counts.astype(np.int64))
    copy = (np.arange(len(repeated)) - first).astype(np.int64)
    source = index[repeated]
    sessions = _own_sessions(trace, source, copy)
    late_s = dice.random(int(sessions.max()) + 1)[sessions] * (min(copies, MAX_JITTER_S) if copies > 1.0 else 0.0)
    at_s = (t_s[repeated] + late_s) % seconds
    order = np.argsort(at_s, kind="stable")
    at_s, source, sessions = at_s[order], source[order], sessions[order]
    if trace.sessions is None:
        sessions = _drawn_sessions(len(source), rate, dice)
    edges = np.cumsum([cluster.rate_rps / rate for cluster in clusters])
    of_session = np.minimum(np.searchsorted(edges, dice.random(int(sessions.max()) + 1)), len(clusters) - 1)
    of_request = of_session[sessions]
    inputs, outputs = (x[source] / x[source].mean() for x in (trace.input_tokens, trace.output_tokens))
    return {
        cluster.name: Expected(
            at_s[of_request == c],
            inputs[of_request == c],
            outputs[of_request == c],
            [f"{trace.name}-{session}" for session in sessions[of_request == c].tolist()],
        )
        for c, cluster in enumerate(clusters)
    }


def _repeated_in_time(trace: RequestTrace, seconds: float) -> tuple[Floats, Ints]:
    """Give the times within the run, the trace begun anew as often as needed, and which request each is."""
    length = trace.length_s + trace.length_s / len(trace.t_s)
    rounds = int(seconds // length) + 1
    t_s = np.concatenate([trace.t_s + i * length for i in range(rounds)])
    index = np.tile(np.arange(len(trace.t_s)), rounds)
    inside = t_s < seconds
    if not inside.any():
        raise InvalidInputError("simulation", (f"no request of the trace falls into its first {seconds:g} s",))
    return t_s[inside], index[inside]


def _own_sessions(trace: RequestTrace, source: Ints, copy: Ints) -> Ints:
    """Number the conversations: each copy of a session is one; without sessions, each copy of a request."""
    known = source if trace.sessions is None else trace.sessions[source]
    numbers: Ints = np.unique(known * (int(copy.max()) + 1) + copy, return_inverse=True)[1].astype(np.int64)
    return numbers


def _drawn_sessions(count: int, rate: float, dice: Generator) -> Ints:
    """Draw sessions for requests in order: one in five opens a new one, the others go on with a recent one."""
    recent = max(1, int(rate * TURN_S * OPENS_SESSION))
    opens, which = dice.random(count) < OPENS_SESSION, dice.random(count)
    newest = np.maximum(np.cumsum(opens), 1) - 1
    back = (which * np.minimum(newest + 1, recent)).astype(np.int64)
    found: Ints = np.where(opens, newest, newest - back)
    return found
