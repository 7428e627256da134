"""There is a snapshot, it is young, and it is valid."""

from collections.abc import Iterator

from headrace.infra.doctor.core.checks.overrides import named
from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.topics import WEIGHTS

FOLLOWS_FROM = ("brokers", "topics", "workers", "fleet", "permissions")

PERIODS = 6
SLACK_MS = 5_000
START_MS = 30_000
"""So long after the first signals there need be no snapshot."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give a snapshot that is missing, old, or no longer valid."""
    name = picture.setup.table[WEIGHTS].name
    if picture.written is None or picture.topic(WEIGHTS) is None:
        return
    commit = picture.commit
    if commit is None:
        if picture.was_read(WEIGHTS):
            yield _none(picture, name)
        return
    age_ms, bound_ms = now_ms - commit.tick_ms, PERIODS * commit.period_ms + SLACK_MS
    if age_ms <= bound_ms:
        return
    valid = now_ms < commit.valid_until_ms
    until = "" if valid else f", and was valid until {duration(now_ms - commit.valid_until_ms)} ago"
    yield fault(
        name,
        f"snapshot {commit.version} is {duration(age_ms)} old{until}; at most {duration(bound_ms)} "
        f"({PERIODS} periods and {duration(SLACK_MS)})",
        f"{_who(picture)}: "
        + (
            "weights do not follow engines or demand"
            if valid
            else "data planes route by the fallback in it, by capacity, without regard to load or distance"
        )
        + _unheard(picture, now_ms),
        "headrace solver",
        value=age_ms,
        bound=bound_ms,
    )


def _none(picture: Picture, name: str) -> Finding:
    heard_for_ms = picture.heard_for_ms
    if heard_for_ms is not None and heard_for_ms <= START_MS:
        return warning(
            name,
            f"{name} holds no snapshot yet: the first signals came {duration(heard_for_ms)} ago; at most "
            f"{duration(START_MS)} later there is one",
            "data planes route by their static fallback, or refuse, until there is one",
            "headrace doctor",
        )
    return fault(
        name,
        f"{name} holds no snapshot",
        f"data planes route by their static fallback, or refuse: {_who(picture)}, or waits for its inputs",
        "headrace solver",
    )


def _who(picture: Picture) -> str:
    """Say what of the solver explains it: a group with a member has one that runs."""
    leader = picture.groups.get(f"{picture.setup.table[WEIGHTS].name}.leader")
    fails = "fails every tick or cannot publish: see its log (`the solve raised`, `readers would refuse the snapshot`)"
    if leader is not None and leader.members:
        return f"a solver runs, and {fails}"
    return f"no solver runs, or it {fails}"


def _unheard(picture: Picture, now_ms: int) -> str:
    """Say whose word is not obeyed."""
    overrides = picture.view.overrides.values() if picture.view is not None else ()
    standing = sorted(named(each) for each in overrides if each.holds(now_ms))
    said = f": {some(standing)}" if standing else ""
    return f"; overrides (drain, pin, freeze) have nobody to obey them{said}"
