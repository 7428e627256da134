"""There is a snapshot, it is young, and it is valid."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration
from headrace.schemas.topics import WEIGHTS

FOLLOWS_FROM = ("brokers", "topics", "workers", "fleet", "permissions")

PERIODS = 6
SLACK_MS = 5_000


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give a snapshot that is missing, old, or no longer valid."""
    name = picture.setup.table[WEIGHTS].name
    if picture.written is None or picture.topic(WEIGHTS) is None:
        return
    commit = picture.commit
    if commit is None and picture.was_read(WEIGHTS):
        yield fault(
            name,
            f"{name} holds no snapshot",
            "data planes route by their static fallback, or refuse: the solver does not run, or waits for its inputs",
            "headrace solver",
        )
    if commit is None:
        return
    age_ms, bound_ms = now_ms - commit.tick_ms, PERIODS * commit.period_ms + SLACK_MS
    if age_ms <= bound_ms:
        return
    valid = now_ms < commit.valid_until_ms
    say = warning if valid else fault
    until = "" if valid else f", and was valid until {duration(now_ms - commit.valid_until_ms)} ago"
    yield say(
        name,
        f"snapshot {commit.version} is {duration(age_ms)} old{until}; at most {duration(bound_ms)} "
        f"({PERIODS} periods and {duration(SLACK_MS)})",
        "no solver writes any more: weights do not follow engines or demand"
        if valid
        else "data planes route by the fallback in it: by capacity, without regard to load or distance",
        "headrace solver",
        value=age_ms,
        bound=bound_ms,
    )
