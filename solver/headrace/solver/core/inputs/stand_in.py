"""A flat profile for an engine whose own is not known: a last choice, rather than no choice.

    TTFT, TBOT = those of the slowest known profile at full load, at any load

A tombstone or a bad record in `profiles` then costs the engines that share it their rank, and not their traffic. What
they can do must be known: only an engine with `capacity_rps_per_replica` has a stand-in. Nothing is learnt by it.
"""

from collections.abc import Iterable

from headrace.schemas.fleet import LatencyProfile

UNKNOWN_S = 1.0
"""Where no profile at all is known: all engines are alike then, so that any number says the same."""


def stand_in(profile_id: str, known: Iterable[LatencyProfile], capacity_rps: float) -> LatencyProfile:
    """Give what stands in for a profile that is not known."""
    slowest = max(known, key=lambda p: (_at_full_load_s(p), p.profile_id), default=None)
    ttft_s, tbot_s = (UNKNOWN_S, 0.0) if slowest is None else (slowest.ttft_s[-1], slowest.tbot_s[-1])
    return LatencyProfile(
        profile_id=profile_id,
        hardware="unknown",
        model="unknown",
        capacity_rps=capacity_rps,
        output_tokens=0.0 if slowest is None else slowest.output_tokens,
        load_knots=(0.0, 1.0),
        ttft_s=(ttft_s, ttft_s),
        tbot_s=(tbot_s, tbot_s),
        measured_from_load=0.0,
        measured_to_load=0.0,
        fit_error_median=None,
        fit_error_p90=None,
        source="stands in for a profile that is not known",
    )


def _at_full_load_s(profile: LatencyProfile) -> float:
    return profile.ttft_s[-1] + profile.output_tokens * profile.tbot_s[-1]
