"""Engines are loaded no further than their profiles were measured."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import REFIT
from headrace.infra.doctor.core.overload import load_of
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some

FOLLOWS_FROM = ("brokers", "units", "profiles")

LEAST_MEASURED = 0.7
"""A profile that was measured to less of its capacity is a guess where it matters: near the wall."""
SLACK = 0.02


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each profile of which more is used than was measured, and each that was hardly measured."""
    if picture.view is None:
        return
    for profile in picture.view.profiles.values():
        engines = [spec for spec in picture.view.specs.values() if spec.profile_id == profile.profile_id]
        loads = {
            spec.engine_id: load for spec in engines for load in [load_of(picture, spec, profile)] if load is not None
        }
        beyond = {name: load for name, load in loads.items() if load > profile.measured_to_load + SLACK}
        if not engines or not (beyond or profile.measured_to_load < LEAST_MEASURED):
            continue
        measured = (
            f"profile {profile.profile_id} was measured to {100 * profile.measured_to_load:.0f} % of its capacity"
        )
        if beyond:
            worst = max(beyond, key=lambda name: (beyond[name], name))
            sentence = (
                f"{measured}; {count(len(beyond), 'engine')} of {len(engines)} at more, {worst} at "
                f"{100 * beyond[worst]:.0f} %: {some(beyond)}"
            )
        else:
            sentence = f"{measured}; at least {100 * LEAST_MEASURED:.0f} %"
        yield warning(
            profile.profile_id,
            sentence,
            "beyond that its latency is extrapolated, and so is each weight that rests on it: measure up to its wall",
            *REFIT,
            value=round(max(beyond.values()), 3) if beyond else profile.measured_to_load,
            bound=profile.measured_to_load if beyond else LEAST_MEASURED,
        )
