"""Profiles fit what they were measured from, and engines behave as their profiles say."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import REFIT, explain
from headrace.infra.doctor.core.overload import is_overloaded
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.weights import PPM, SnapshotCommit

FOLLOWS_FROM = ("brokers", "units", "load")

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
    # One with a queue is slow by its queue: the check `load` tells of it.
    ids = {name for name in ids if not is_overloaded(picture, name)}
    at_bound = {
        each.engine_id: each.trim_ppm / PPM
        for each in picture.commit.remembered
        if each.engine_id in ids and not 1.01 / bound < each.trim_ppm / PPM < 0.99 * bound
    }
    if not at_bound:
        return
    first = min(at_bound)
    others = sorted(at_bound.keys() - {first})
    so_are = f"; so {'is' if len(others) == 1 else 'are'} {some(others)}" if others else ""
    before = picture.commit_before
    was = 1.0 if before is None else _trim(before, first)
    has_changed = before is not None and before.version < picture.commit.version and 1.01 / bound < was < 0.99 * bound
    ago = "" if before is None or not has_changed else f"{duration(picture.commit.tick_ms - before.tick_ms)} ago"
    yield warning(
        first if len(at_bound) == 1 else "trim",
        f"{first} is {at_bound[first]:.2f} times as slow as its profile says, which is solver.trim_bound ({bound:g}); "
        f"{was:.2f} times {ago}{so_are}"
        if has_changed
        else f"{first} is {at_bound[first]:.2f} times as slow as its profile says, which is solver.trim_bound "
        f"({bound:g}){so_are}",
        "its profile fitted: the engine has changed (throttled, shared, another load), and it is corrected no further"
        if has_changed
        else "its profile is of other hardware, another model or another version of the engine, and is corrected no "
        "further",
        *((explain(picture, first),) if has_changed else REFIT),
        value=at_bound[first],
        bound=bound,
    )


def _trim(commit: SnapshotCommit, engine_id: str) -> float:
    return next((each.trim_ppm / PPM for each in commit.remembered if each.engine_id == engine_id), 1.0)
