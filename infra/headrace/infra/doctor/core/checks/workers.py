"""Streams, solver and bridge run: each consumer group has members, and what they should write is written."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration
from headrace.schemas.topics import DEAD_LETTERS, STATE_OF, WEIGHTS

FOLLOWS_FROM = ("brokers", "topics", "permissions")

SILENT_MS = 30_000
"""States that are this much older than the signals they are made of: nobody makes them."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each kind of worker of which none runs."""
    setup = picture.setup
    yield from _no_member(picture, setup.streams.group_id, "streams", "signals are not folded: states grow old")
    leader = f"{setup.table[WEIGHTS].name}.leader"
    yield from _no_member(picture, leader, "solver", "nothing makes weights: data planes keep the last ones")
    if setup.bridge.sources:
        yield from _no_member(picture, setup.bridge.group_id, "bridge", "telemetry of bridge.sources is not read")
    streams = picture.groups.get(setup.streams.group_id)
    if streams is None or streams.members is None:
        yield from _nothing_written(picture, now_ms)


def _no_member(picture: Picture, group_id: str, command: str, means: str) -> Iterator[Finding]:
    group = picture.groups.get(group_id)
    if group is None or group.members != 0:
        return
    state = f" ({group.state})" if group.state else ""
    yield fault(
        command,
        f"no `headrace {command}` runs: group {group_id}{state} has 0 members; at least 1",
        means,
        f"headrace {command}",
        value=0,
        bound=1,
    )


def _nothing_written(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Judge the streams by what they write, where the broker does not tell a group's members.

    One that writes anything runs: what it is late with, the check `lag` tells. One that has just been started, or
    whose first signals have just come, is given the time that it takes.
    """
    wrote = [at_ms for role in (*STATE_OF.values(), DEAD_LETTERS) if (at_ms := picture.newest(role)) is not None]
    heard_for_ms = picture.heard_for_ms
    if wrote and now_ms - max(wrote) <= SILENT_MS:
        return
    if not wrote and heard_for_ms is not None and heard_for_ms <= SILENT_MS:
        return
    idle: list[str] = []
    table = picture.setup.table
    # Who refuses signals reads them, whether or not any makes a state.
    refused = [each.refused_ms for each in picture.letters or () if each.letter.stage == "streams"]
    for signals, state in STATE_OF.items():
        heard, written = picture.newest(signals), picture.newest(state)
        written = max((*refused, *(() if written is None else (written,))), default=None)
        if heard is not None and (written is None or heard - written > SILENT_MS):
            since = "nothing was ever" if written is None else f"nothing has for {duration(heard - written)} been"
            idle.append(f"{since} written to {table[state].name} while signals came")
    if idle:
        yield fault(
            "streams",
            f"no `headrace streams` seems to run: {'; '.join(idle)}",
            "signals are not folded: states grow old",
            "headrace streams",
        )
