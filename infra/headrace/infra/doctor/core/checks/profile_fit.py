"""Profiles fit what they were measured from, and engines behave as their profiles say."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import REFIT
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import some
from headrace.schemas.weights import PPM

FOLLOWS_FROM = ("brokers", "units")

MOST_ERROR = 0.25
"""Relative error of a profile's worst tenth (p90), of the end-to-end time."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each profile that fits badly, and the engines that the trim cannot bring together with theirs."""
    if picture.view is None:
        return
    used = {spec.profile_id for spec in picture.view.specs.values()}
    for profile in picture.view.profiles.values():
        errors = {"fit_error_p90": profile.fit_error_p90, "left_out_error_p90": profile.left_out_error_p90}
        name, worst = max(
            ((name, error) for name, error in errors.items() if error is not None),
            key=lambda pair: pair[1],
            default=("", 0.0),
        )
        if worst > MOST_ERROR and profile.profile_id in used:
            yield warning(
                profile.profile_id,
                f"profile {profile.profile_id}: {name} is {worst:.2f}; at most {MOST_ERROR}",
                "its load test does not lie on one curve: too short, or of mixed lengths; weights follow its errors",
                *REFIT,
                value=worst,
                bound=MOST_ERROR,
            )
    yield from _trimmed(picture)


def _trimmed(picture: Picture) -> Iterator[Finding]:
    bound = picture.setup.solver.trim_bound
    if picture.commit is None or bound <= 1.0:
        return
    ids = {spec.engine_id for spec in picture.view.specs.values()} if picture.view is not None else set[str]()
    at_bound = {
        each.engine_id: each.trim_ppm / PPM
        for each in picture.commit.remembered
        if each.engine_id in ids and not 1.01 / bound < each.trim_ppm / PPM < 0.99 * bound
    }
    if not at_bound:
        return
    first = min(at_bound)
    yield warning(
        first if len(at_bound) == 1 else "trim",
        f"{first} is {at_bound[first]:.2f} times as slow as its profile says, which is solver.trim_bound ({bound:g}); "
        f"so are {len(at_bound)}: {some(at_bound)}",
        "its profile is of other hardware, another model or another version of the engine, and is corrected no further",
        *REFIT,
        value=at_bound[first],
        bound=bound,
    )
