"""What operators' records must be: run where a fleet file is published, and by the solver before it believes one."""

import math
from collections.abc import Iterator
from itertools import pairwise

from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.free_text import line_problem, text_problem
from headrace.schemas.ids import identifier_problem

MAX_NAMES = 1024
MAX_KNOTS = 4096
MIN_KNOT_STEP = 1e-9
"""Knots closer than this are one: a slope between them would be noise, or overflow."""
MAX_RPS = 1e9
MAX_SECONDS = 1e6


def check_engine(spec: EngineSpec) -> tuple[str, ...]:
    """Give every problem of an engine's record as a sentence with value, bound and field; () where it is sound."""
    return tuple(_engine_problems(spec))


def check_profile(profile: LatencyProfile) -> tuple[str, ...]:
    """Give every problem of a profile; () where its curves are finite, and its knots rise from 0 to 1."""
    return tuple(_profile_problems(profile))


def _engine_problems(spec: EngineSpec) -> Iterator[str]:
    yield from _identifier("engine_id", spec.engine_id)
    yield from _identifier("site", spec.site)
    yield from _identifier("profile_id", spec.profile_id)
    for field in ("models", "capabilities", "residency"):
        names: tuple[str, ...] = getattr(spec, field)
        if len(names) > MAX_NAMES:
            yield f"{field} has {len(names)} entries; at most {MAX_NAMES}"
            continue
        for i, name in enumerate(names):
            yield from _identifier(f"{field}[{i}]", name)
    if spec.capacity_rps_per_replica is not None:
        yield from _positive("capacity_rps_per_replica", spec.capacity_rps_per_replica, MAX_RPS)
    problem = None if spec.address is None else line_problem("address", spec.address)
    if problem is not None:
        yield problem


def _profile_problems(profile: LatencyProfile) -> Iterator[str]:
    yield from _identifier("profile_id", profile.profile_id)
    yield from _positive("capacity_rps", profile.capacity_rps, MAX_RPS)
    yield from _measured("output_tokens", profile.output_tokens, MAX_RPS)
    knots = profile.load_knots
    if not 2 <= len(knots) <= MAX_KNOTS:
        yield f"load_knots has {len(knots)} entries; 2 to {MAX_KNOTS}"
    elif not (knots[0] == 0.0 and knots[-1] == 1.0 and all(a < b for a, b in pairwise(knots))):
        yield "load_knots do not rise from 0 to 1"
    elif any(b - a < MIN_KNOT_STEP for a, b in pairwise(knots)):
        closest = min(b - a for a, b in pairwise(knots))
        yield f"load_knots have two that are {closest:g} apart; at least {MIN_KNOT_STEP:g}"
    for field in ("ttft_s", "tbot_s"):
        curve: tuple[float, ...] = getattr(profile, field)
        if len(curve) != len(knots):
            yield f"{field} has {len(curve)} entries; one for each of {len(knots)} load_knots"
        for i, value in enumerate(curve[:MAX_KNOTS]):
            yield from _measured(f"{field}[{i}]", value, MAX_SECONDS)
    for field in ("measured_from_load", "measured_to_load"):
        yield from _measured(field, getattr(profile, field), MAX_RPS)
    yield from _provenance_problems(profile)


def _provenance_problems(profile: LatencyProfile) -> Iterator[str]:
    """Judge what says where a profile comes from and how well it fits."""
    for field in ("fit_error_median", "fit_error_p90", "left_out_error_median", "left_out_error_p90"):
        error: float | None = getattr(profile, field)
        if error is not None:
            yield from _measured(field, error, MAX_RPS)
    for field in ("hardware", "model", "source"):
        problem = text_problem(field, getattr(profile, field))
        if problem is not None:
            yield problem


def _identifier(field: str, value: str) -> Iterator[str]:
    problem = identifier_problem(field, value)
    if problem is not None:
        yield problem


def _positive(field: str, value: float, bound: float) -> Iterator[str]:
    if not (math.isfinite(value) and 0 < value <= bound):
        yield f"{field} is {value}; above 0 and at most {bound:g}"


def _measured(field: str, value: float, bound: float) -> Iterator[str]:
    if not (math.isfinite(value) and 0 <= value <= bound):
        yield f"{field} is {value}; 0 to {bound:g}"
