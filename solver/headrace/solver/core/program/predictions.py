"""What a plan predicts for each group of engines: load, TTFT, TBOT and latency there, and the price of its pool."""

from dataclasses import dataclass

import numpy as np

from headrace.solver.core.profile.load_cost import MS, latency_ms
from headrace.solver.core.program.layout import Floats, Layout
from headrace.solver.core.program.plan import Plan, utilisation

FULL = 1.0 - 1e-6
"""From this utilisation an engine counts as full."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Per group, (H,): utilisation; TTFT and TBOT in seconds; latency of a whole request in ms at that load."""

    utilisation: Floats
    ttft_s: Floats
    tbot_s: Floats
    latency_ms: Floats


def predict(layout: Layout, plan: Plan) -> Predictions:
    """Read each group's profile at its planned load; beyond capacity the curves go on, without a queue."""
    used = utilisation(layout, plan)
    ttft, tbot, whole = np.zeros_like(used), np.zeros_like(used), np.zeros_like(used)
    for number, profile_id in enumerate(layout.profiles):
        of_profile = layout.group_number == number
        profile = layout.problem.profiles[profile_id]
        ttft_ms, tbot_ms = latency_ms(profile, used[of_profile])
        ttft[of_profile], tbot[of_profile] = ttft_ms / MS, tbot_ms / MS
        whole[of_profile] = ttft_ms + profile.output_tokens * tbot_ms
    return Predictions(used, ttft, tbot, whole)
