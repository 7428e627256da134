"""A share as it is typed: `20%`, or `200000ppm`. Percent and parts per million, always with their unit."""

import math

from headrace.schemas.weights import PPM

_UNITS = {"%": PPM / 100, "ppm": 1.0}
EXPECTED = "expected 0% to 100%, or 0ppm to 1000000ppm"


def share_ppm(text: str) -> int | None:
    """Give parts per million, rounded; None where it is no share."""
    for unit, scale in _UNITS.items():
        if text.endswith(unit):
            try:
                ppm = float(text[: -len(unit)]) * scale
            except ValueError:
                return None
            return round(ppm) if math.isfinite(ppm) and 0.0 <= ppm <= PPM else None
    return None
