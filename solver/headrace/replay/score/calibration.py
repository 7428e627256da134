"""Does the score of the recorded policy agree with what the recorded fleet then showed?

    off = scored / measured - 1        mean within 10 %, p95 within 20 %; else the report says so by itself

Both are the engines' own latency, without the network, of those who left them in the time that was measured. The score
knows profiles, demand and weights; of what it is held against it was given the lengths of answers, over time and how
they spread, and which engines were unmistakably slow (`slowness`).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from headrace.replay.score.latency_mass import quantile_s
from headrace.replay.score.measured import MeasuredFleet, Shown
from headrace.replay.score.variant_score import VariantScore

MEAN_WITHIN = 0.10
P95_WITHIN = 0.20
FEWEST = 100
"""Requests below which a comparison says nothing."""


class Agreement(StrEnum):
    """What the comparison came to."""

    AGREES = "AGREES"
    DISAGREES = "DISAGREES"
    NOT_MEASURED = "NOT_MEASURED"


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """The fleet, or one engine: milliseconds; p95 is compared for the fleet only."""

    what: str
    requests: int
    measured_mean_ms: float | None
    scored_mean_ms: float | None
    mean_off: float | None
    measured_p95_ms: float | None
    scored_p95_ms: float | None
    p95_off: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fleet's row first, then each engine's; the agreement is the fleet's."""

    agreement: Agreement
    sentence: str
    rows: tuple[CalibrationRow, ...]


def calibrate(score: VariantScore, measured: MeasuredFleet) -> Calibration:
    """Hold a score of the recorded policy, or of the first one of a simulation, against what its engines showed."""
    mass, sums = score.inside(*_span(score, measured))
    requests, times = sums.sum(axis=1).tolist()
    scored_p95 = quantile_s(mass, 0.95)
    fleet = _row("all engines", measured.fleet, times / requests if requests else None, scored_p95)
    rows = [fleet]
    for i, engine in enumerate(score.engines):
        shown, count = measured.engines.get(engine), float(sums[0, i]) if requests else 0.0
        if shown is not None and count > 0.0:
            rows.append(_row(engine, shown, float(sums[1, i]) / count, None))
    return Calibration(*_judged(fleet, score), rows=tuple(rows))


def _span(score: VariantScore, measured: MeasuredFleet) -> tuple[float, float]:
    """Give the time that both tell of, and all of the score's where the measurement does not say of which."""
    if not measured.to_ms:
        return score.from_ms, math.inf
    return max(score.from_ms, measured.from_ms), measured.to_ms


def _judged(row: CalibrationRow, score: VariantScore) -> tuple[Agreement, str]:
    history, policy, fleet, requests = (
        ("history", "the recorded policy", "the recorded fleet", "recorded requests")
        if score.met is None
        else ("the simulation", score.name, "the simulated engines", "requests")
    )
    if row.requests < FEWEST or row.mean_off is None or row.p95_off is None:
        few = f"{history} holds {row.requests} measured requests, at least {FEWEST} are needed"
        return Agreement.NOT_MEASURED, f"how well the score meets reality is not known: {few}"
    told = f"mean {row.mean_off:+.1%}, p95 {row.p95_off:+.1%} against what {row.requests:,} {requests} showed"
    if abs(row.mean_off) <= MEAN_WITHIN and abs(row.p95_off) <= P95_WITHIN:
        return Agreement.AGREES, f"the score of {policy} agrees with {fleet}: {told}"
    warning = "believe differences between variants only where they are much larger"
    return Agreement.DISAGREES, f"the score of {policy} does NOT agree with {fleet}: {told}; {warning}"


def _row(what: str, shown: Shown, scored_mean_s: float | None, scored_p95_s: float | None) -> CalibrationRow:
    return CalibrationRow(
        what=what,
        requests=shown.count,
        measured_mean_ms=_ms(shown.mean_s),
        scored_mean_ms=_ms(scored_mean_s),
        mean_off=_off(scored_mean_s, shown.mean_s),
        measured_p95_ms=_ms(shown.p95_s),
        scored_p95_ms=_ms(scored_p95_s),
        p95_off=_off(scored_p95_s, shown.p95_s),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds


def _off(scored: float | None, measured: float | None) -> float | None:
    return scored / measured - 1.0 if scored is not None and measured else None
