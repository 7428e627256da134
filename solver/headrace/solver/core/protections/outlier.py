"""outlier = log residual > median + max(log outlier_ratio, outlier_mads x 1.4826 MAD), of three peers or more.

An engine that is slower against its profile than its peers of the pool are against theirs. A whole pool that is slow
has no outlier: that is for the trim. So is a pool of one or two, where nobody can say which of them is the odd one.
"""

import math
from collections.abc import Mapping
from statistics import median

from headrace.solver.settings import SolverSettings

MAD_TO_SIGMA = 1.4826
FEWEST_PEERS = 3


def outliers_of(residuals: Mapping[str, float], settings: SolverSettings) -> Mapping[str, float]:
    """Give the engines whose residual stands out of their peers', with how many times the median it is."""
    if len(residuals) < FEWEST_PEERS:
        return {}
    logs = {engine_id: math.log(value) for engine_id, value in residuals.items()}
    middle = median(logs.values())
    spread = MAD_TO_SIGMA * median(abs(value - middle) for value in logs.values())
    limit = middle + max(math.log(settings.outlier_ratio), settings.outlier_mads * spread)
    return {engine_id: math.exp(value - middle) for engine_id, value in logs.items() if value > limit}
