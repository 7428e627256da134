"""Every topic is there, with the partitions, the replication and the settings of the topic table."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture, Presence, TopicSeen
from headrace.infra.doctor.core.words import quoted, some
from headrace.schemas.topics import STATE_OF, Topic

FOLLOWS_FROM = ("brokers",)

APPLY = "headrace topics apply"
OF_HISTORY = ("retention.ms", "min.compaction.lag.ms")
"""Judged by the check `history`: only what is too short is a finding."""
_MEANS = {
    "cleanup.policy": "delete forgets what stays as it is, compact forgets history: readers find records missing",
    "max.message.bytes": "records between the two sizes are refused by the broker, or refused later by a reader",
    "message.timestamp.type": "a producer's clock is then held against itself, and one that is wrong is not noticed",
    "segment.ms": "what a late reader has to read grows",
    "min.cleanable.dirty.ratio": "what a late reader has to read grows",
}
_WORSE = ("cleanup.policy",)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each difference from the topic table."""
    missing: list[str] = []
    for topic in picture.setup.table.values():
        seen = picture.topics.get(topic.name)
        if seen is None or seen.presence is Presence.DENIED:
            continue
        if seen.presence is Presence.MISSING:
            missing.append(topic.name)
            continue
        yield from _partitions(picture, topic, seen)
        yield from _replication(picture, topic, seen)
        yield from _settings(topic, seen)
    if missing:
        one = len(missing) == 1
        yield fault(
            missing[0] if one else "topics",
            f"{missing[0]} is missing"
            if one
            else f"{len(missing)} of {len(picture.setup.table)} topics are missing: {some(missing)}",
            "whoever writes or reads them waits; or this client may not see them, or topics.prefix is not theirs",
            APPLY,
            value=len(missing),
            bound=0,
        )


def _partitions(picture: Picture, topic: Topic, seen: TopicSeen) -> Iterator[Finding]:
    has = len(seen.partitions)
    if has == topic.partitions:
        return
    sentence = f"{topic.name} has {has} partitions; it should have {topic.partitions}"
    keyed = (*STATE_OF, *STATE_OF.values())
    others = {len(each.partitions) for role in keyed for each in [picture.topic(role)] if each is not None}
    if topic.role in keyed and others == {has}:
        if topic.role != keyed[0]:
            return
        yield warning(
            "topics.partitions",
            f"{sentence} (topics.partitions), as every other signals and state topic",
            "the configuration is wrong, not the topics: a new topic would not match them",
            f"headrace topics diff --set topics.partitions={has}",
            value=has,
            bound=topic.partitions,
        )
        return
    why = "keyed state cannot be re-partitioned: a worker refuses to start, or looks for keys where they are not"
    if topic.partitions == 1:
        why = "it needs one order: its writer refuses to start, and readers would see records out of their order"
    state = [name for role, name in STATE_OF.items() if role == topic.role]
    also = [picture.setup.table[role].name for role in state]
    address = quoted(picture.setup.bootstrap_servers)
    yield fault(
        topic.name,
        sentence,
        f"{why}. Stop what writes it; deleting it loses what it holds, which signals and the next tick bring back",
        *(f"kafka-topics --bootstrap-server {address} --delete --topic {name}" for name in (topic.name, *also)),
        APPLY,
        value=has,
        bound=topic.partitions,
    )


def _replication(picture: Picture, topic: Topic, seen: TopicSeen) -> Iterator[Finding]:
    if not seen.replication or seen.replication == (topic.replication,):
        return
    has = "/".join(map(str, seen.replication))
    if seen.replication[0] > topic.replication:
        return  # more than is asked for harms nobody
    yield warning(
        topic.name,
        f"{topic.name} has replication {has}; it should have {topic.replication} (topics.replication)",
        "the loss of a broker loses its records, or stops its writers",
        f"kafka-reassign-partitions --bootstrap-server {quoted(picture.setup.bootstrap_servers)} "
        "--reassignment-json-file plan.json --execute",
        value=has,
        bound=topic.replication,
    )


def _settings(topic: Topic, seen: TopicSeen) -> Iterator[Finding]:
    if seen.config is None:
        return
    for name, should in topic.config.items():
        has = seen.config.get(name)
        if has == should or name in OF_HISTORY:
            continue
        say = fault if name in _WORSE else warning
        yield say(
            topic.name,
            f"{topic.name}: {name} is {has or 'not set'}; it should be {should}",
            _MEANS.get(name, "it does not behave as the others expect"),
            APPLY,
            value=has,
            bound=should,
        )
