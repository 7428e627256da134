"""What a plan really costs a request: mean network and engine latency over all served traffic, on the exact curves.

Whatever cost a policy was given, it is scored here by the same one, so that policies can be compared. Engine latency
is that of the profile at the planned load; a load above capacity has a queue that no profile describes, and is told
apart.
"""

from dataclasses import dataclass

import numpy as np

from headrace.solver.core.program.dot import dot
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.core.program.predictions import predict


@dataclass(frozen=True, slots=True)
class Score:
    """Means over the served requests in ms; `overloaded_rps` is load above capacity, whose queue is not in them.

    A request of work w is taken to be w times as long in its engine as the profile says. Load is of work.
    """

    network_ms: float
    engine_ms: float
    served_rps: float
    shed_rps: float
    overloaded_rps: float

    @property
    def end_to_end_ms(self) -> float:
        """Mean latency of a request, network and engine."""
        return self.network_ms + self.engine_ms


def score(layout: Layout, plan: Plan) -> Score:
    """Score a plan; of no served traffic the means are 0."""
    served = layout.sent_rps(plan.flow)
    over = np.maximum(plan.load - layout.group_capacity, 0.0)
    per = 1.0 / served if served > 0.0 else 0.0
    return Score(
        network_ms=dot(layout.pair_network, plan.flow) * per,
        engine_ms=dot(predict(layout, plan).latency_ms, plan.load) * per,
        served_rps=served,
        shed_rps=float(layout.requests(plan.shed).sum()),
        overloaded_rps=float(over.sum()),
    )
