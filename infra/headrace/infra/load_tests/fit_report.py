"""Fits as text and as JSON: how good each is, over what range, and the curve itself where there is only one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.infra.load_tests.unit_doubts import unit_doubts
from headrace.schemas.plain import to_plain
from headrace.solver.core.profile.fit_profile import POOR_FIT, FittedProfile, RefusedProfile, steady_points
from headrace.solver.core.profile.misfit import misfit_words

ROWS = 11
HEADER = f"{'profile':32} {'stages':>8} {'capacity':>12} {'measured':>12} {'error':>12} {'left out':>12}  pool"


def as_text(outcomes: Sequence[FittedProfile | RefusedProfile]) -> str:
    """Give the table of fits, the reasons of those refused, and the curve of an only one."""
    fitted = [outcome for outcome in outcomes if isinstance(outcome, FittedProfile)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, RefusedProfile)]
    lines: list[str] = []
    if fitted:
        lines += [HEADER, *map(_line, fitted), "", *_legend(fitted)]
        lines += [f"warning: {fit.profile.profile_id}: {said}" for fit in fitted for said in warnings(fit)]
    if len(outcomes) == 1 and fitted:
        lines += ["", *_curve(fitted[0])]
    for each in refused:
        lines += ["", f"refused {each.labels.profile_id}:", *(f"  - {reason}" for reason in each.reasons)]
    return "\n".join(lines).strip("\n")


def as_json(outcomes: Sequence[FittedProfile | RefusedProfile]) -> dict[str, Any]:
    """Give {"fitted": [...], "refused": [...]}."""
    return {
        "fitted": [_fitted_json(each) for each in outcomes if isinstance(each, FittedProfile)],
        "refused": [
            {"profile_id": each.labels.profile_id, "reasons": list(each.reasons)}
            for each in outcomes
            if isinstance(each, RefusedProfile)
        ],
    }


def warnings(fit: FittedProfile) -> list[str]:
    """Give what a profile that was not refused should still not be trusted for, a sentence each."""
    return [*unit_doubts(fit.wall), *misfit_words(steady_points(fit.wall), fit.wall.capacity_rps), *_disagreeing(fit)]


def _disagreeing(fit: FittedProfile) -> list[str]:
    median = fit.profile.left_out_error_median
    if median is None:
        stages = len(fit.wall.steady)
        return [f"{stages} stages fit whatever they are, so no error can be told; measure more below the capacity"]
    if median <= POOR_FIT:
        return []
    return [f"a stage left out is missed by {median:.0%} (median): the stages disagree, or are too few; measure more"]


def _fitted_json(fit: FittedProfile) -> dict[str, Any]:
    stages = [
        {
            "place": stage.place,
            "completed_rps": stage.completed_rps,
            "e2e_s": stage.e2e_s,
            "error": float(fit.errors[i]),
            "left_out_error": float(fit.left_out[i]) if len(fit.left_out) else None,
        }
        for i, stage in enumerate(fit.wall.steady)
    ]
    return {
        "profile": to_plain(fit.profile),
        "wall_reached": fit.wall.reached,
        "saturated_stages": [stage.place for stage in fit.wall.saturated],
        "shape": to_plain(fit.shape),
        "warnings": warnings(fit),
        "stages": stages,
    }


def _line(fit: FittedProfile) -> str:
    p = fit.profile
    used = f"{len(fit.wall.steady)}/{len(fit.wall.steady) + len(fit.wall.saturated)}"
    capacity = f"{'' if fit.wall.reached else '>= '}{p.capacity_rps:.4g} rps"
    loads = f"{p.measured_from_load:.2f} to {p.measured_to_load:.2f}"
    left_out = _errors(p.left_out_error_median, p.left_out_error_p90)
    shape = f"{fit.shape.curves} curve{'s' if fit.shape.curves != 1 else ''}"
    error = _errors(p.fit_error_median, p.fit_error_p90)
    return f"{p.profile_id:32} {used:>8} {capacity:>12} {loads:>12} {error:>12} {left_out:>12}  {shape}"


def _errors(median: float | None, p90: float | None) -> str:
    return "-" if median is None or p90 is None else f"{median:.1%} {p90:.1%}"


def _legend(fitted: Sequence[FittedProfile]) -> list[str]:
    lines = [
        "stages: before the wall, of all. measured: loads, as shares of capacity; beyond, the pool's shape goes on.",
        "error: median and p90, of the end-to-end time. left out: the same, each stage with a fit made without it.",
    ]
    if not all(fit.wall.reached for fit in fitted):
        lines.append(">=: the rate still rose at the last stage; the capacity is the highest rate seen, a lower bound.")
    return lines


def _curve(fit: FittedProfile) -> list[str]:
    p = fit.profile
    loads = np.linspace(0.0, 1.0, ROWS)
    ttft_ms = np.interp(loads, p.load_knots, p.ttft_s) * 1000
    tbot_ms = np.interp(loads, p.load_knots, p.tbot_s) * 1000
    lines = [f"{'load':>6} {'rps':>10} {'TTFT ms':>10} {'TBOT ms':>10} {'e2e ms':>10}"]
    for load, ttft, tbot in zip(loads.tolist(), ttft_ms.tolist(), tbot_ms.tolist(), strict=True):
        inside = p.measured_from_load - 1e-9 <= load <= p.measured_to_load + 1e-9
        e2e = ttft + p.output_tokens * tbot
        lines.append(
            f"{load:6.2f} {load * p.capacity_rps:10.4g} {ttft:10.1f} {tbot:10.2f} {e2e:10.1f}"
            f"{'' if inside else '  extrapolated'}"
        )
    return lines
