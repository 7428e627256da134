"""Workers keep up: what their groups have not read yet is a matter of seconds."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import GroupSeen, Picture, TopicSeen
from headrace.infra.doctor.core.words import duration
from headrace.schemas.topics import STATE_OF

FOLLOWS_FROM = ("brokers", "workers", "permissions")

MOST_MS = 10_000
"""Time's worth of records that a worker may be behind."""
FAR_MS = 60_000
FEW = 200
"""So few records are no lag: offsets are committed by the batch."""
RATE_S = 60.0


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each group that is behind on a topic."""
    setup = picture.setup
    read_by_streams = [setup.table[role].name for role in STATE_OF]
    yield from _group(picture, setup.streams.group_id, read_by_streams, "streams", "headrace streams --workers 2")
    sources = sorted({source.topic for source in setup.bridge.sources.values()})
    yield from _group(picture, setup.bridge.group_id, sources, "bridge", "headrace bridge")


def _group(picture: Picture, group_id: str, topics: list[str], worker: str, mend: str) -> Iterator[Finding]:
    group = picture.groups.get(group_id)
    if group is None or group.problem is not None:
        return
    for name in topics:
        topic = picture.topics.get(name)
        if topic is None:
            continue
        behind, rate = _behind(topic, group), _rate_per_s(topic)
        if behind <= FEW or behind <= rate * MOST_MS / 1000:
            continue
        behind_ms = None if rate <= 0 else 1000 * behind / rate
        say = warning if behind_ms is not None and behind_ms < FAR_MS else fault
        worth = "" if behind_ms is None else f", {duration(behind_ms)} of it"
        yield say(
            name,
            f"{worker} ({group_id}) is {behind} records behind on {name}{worth}; at most {duration(MOST_MS)}",
            "weights are computed from what was, that long ago; more workers share the partitions, up to "
            f"{len(topic.partitions)}",
            mend,
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
