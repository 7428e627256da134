"""Real round trips between AWS regions: rtt = p50 x exp(sigma z), sigma = ln(p90 / p50) / 1.2816, z standard normal.

So half of the draws are above the measured p50 and a tenth above the measured p90. Directed, as measured.
"""

import math
from functools import cache

from numpy.random import Generator

from headrace.infra.fleet.tables import rows
from headrace.schemas.errors import InvalidInputError

Z90 = 1.2815515655446004


@cache
def _measured() -> dict[tuple[str, str], tuple[float, float]]:
    return {
        (row["src"], row["dst"]): (float(row["rtt_p50_ms"]) / 1000, float(row["rtt_p90_ms"]) / 1000)
        for row in rows("aws_region_rtt")
    }


class RoundTrip:
    """The round trip of one directed pair of regions, in seconds."""

    __slots__ = ("_rng", "_sigma", "median_s")

    def __init__(self, median_s: float, p90_s: float, rng: Generator) -> None:
        self.median_s = median_s
        self._sigma = math.log(max(p90_s, median_s) / median_s) / Z90
        self._rng = rng

    def draw_s(self) -> float:
        """Draw one round trip."""
        return self.median_s * math.exp(self._sigma * self._rng.standard_normal())


def round_trip(src: str, dst: str, rng: Generator) -> RoundTrip:
    """Give the measured round trip between two AWS regions.

    Raises:
        InvalidInputError: one of them is not among the 33 measured.
    """
    pair = _measured().get((src, dst))
    if pair is None:
        known = sorted({a for a, _ in _measured()})
        wrong = tuple(
            f"region is {name!r}; measured are {', '.join(known)}" for name in (src, dst) if name not in known
        )
        raise InvalidInputError("round trip", wrong)
    return RoundTrip(*pair, rng)
