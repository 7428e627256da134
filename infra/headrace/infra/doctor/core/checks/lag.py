"""Workers keep up: what their groups have not read yet is a matter of seconds."""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import GroupSeen, Picture, TopicSeen
from headrace.infra.doctor.core.words import duration
from headrace.schemas.topics import STATE_OF

FOLLOWS_FROM = ("brokers", "workers", "permissions", "dead_letters")

MOST_MS = 10_000
"""Time's worth of records that a worker may be behind."""
FAR_MS = 60_000
FEW = 200
"""So few records are no lag: offsets are committed by the batch."""
RATE_S = 60.0


@dataclass(frozen=True, slots=True)
class _Reader:
    group_id: str
    worker: str
    mend: str


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give each group that is behind on a topic."""
    setup = picture.setup
    read_by_streams = [setup.table[role].name for role in STATE_OF]
    streams = _Reader(setup.streams.group_id, "streams", "headrace streams --workers 2")
    yield from _group(picture, now_ms, streams, read_by_streams)
    sources = sorted({source.topic for source in setup.bridge.sources.values()})
    yield from _group(picture, now_ms, _Reader(setup.bridge.group_id, "bridge", "headrace bridge"), sources)


def _group(picture: Picture, now_ms: int, reader: _Reader, topics: list[str]) -> Iterator[Finding]:
    group = picture.groups.get(reader.group_id)
    if group is None or group.problem is not None:
        return
    for name in topics:
        topic = picture.topics.get(name)
        if topic is None:
            continue
        behind, rate = _behind(topic, group), _rate_per_s(topic)
        age_ms = max((now_ms - at_ms for (of, _), at_ms in group.unread_ms.items() if of == name), default=None)
        if behind <= FEW or (age_ms <= MOST_MS if age_ms is not None else behind <= rate * MOST_MS / 1000):
            continue
        is_near = age_ms < FAR_MS if age_ms is not None else 0.0 < behind <= rate * FAR_MS / 1000
        say = warning if is_near else fault
        old = "" if age_ms is None else f", the earliest {duration(age_ms)} old"
        yield say(
            name,
            f"{reader.worker} ({reader.group_id}) is {behind} records behind on {name}{old}; at most "
            f"{duration(MOST_MS)}",
            "weights are computed from what was, that long ago, and engines that still report count as silent; more "
            f"workers share the partitions, up to {len(topic.partitions)}",
            reader.mend,
            value=behind,
            bound=max(FEW, round(rate * MOST_MS / 1000)),
        )


def _behind(topic: TopicSeen, group: GroupSeen) -> int:
    """Count what is unread; where a group has committed nothing, from the beginning."""
    behind = 0
    for each in topic.partitions:
        if each.end is None or each.first is None:
            continue
        behind += max(0, each.end - max(each.first, group.committed.get((topic.name, each.number), each.first)))
    return behind


def _rate_per_s(topic: TopicSeen) -> float:
    return sum(each.grown for each in topic.partitions) / RATE_S
