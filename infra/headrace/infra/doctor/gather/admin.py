"""What the broker says of topics and groups, by Admin calls: each bounded; what cannot be had is named in `unread`."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource  # `admin` does not export these
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType

from headrace.infra.doctor.core.picture import GroupSeen, PartitionSeen, Place, Presence, TopicSeen, Unread
from headrace.infra.doctor.gather.time_left import TimeLeft, why

if TYPE_CHECKING:
    from concurrent.futures import Future

_DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)


class Admin:
    """Asks one cluster. `unread` grows with what was not answered."""

    def __init__(self, client: AdminClient, left: TimeLeft, *, tells_members: bool) -> None:
        self._client = client
        self._left = left
        self._tells_members = tells_members
        self.unread: list[Unread] = []

    def addresses(self) -> Mapping[str, int]:
        """Give the address that each broker tells its clients to use, and its node."""
        try:
            found = self._client.list_topics(timeout=self._left.call_s).brokers
        except KafkaException as error:
            self.unread.append(Unread("brokers", why(error)))
            return {}
        return {f"{broker.host}:{broker.port}": broker.id for broker in found.values()}

    def topics(self, names: Collection[str]) -> dict[str, TopicSeen]:
        """Describe each topic by its name: one that may not be described is not one that is missing."""
        asked = TopicCollection(sorted(names))
        futures = cast(
            "Mapping[str, Future[Any]]",
            self._client.describe_topics(asked, include_authorized_operations=True, request_timeout=self._left.call_s),
        )
        done, failed = self._left.answers(futures)
        found = {name: _topic(name, each) for name, each in done.items()}
        for name, error in failed.items():
            presence = _absence(error)
            if presence is None:
                self.unread.append(Unread(f"topic {name}", why(error)))
            else:
                found[name] = TopicSeen(name, presence)
        return self._with_settings(found)

    def _with_settings(self, topics: dict[str, TopicSeen]) -> dict[str, TopicSeen]:
        there = [name for name, topic in topics.items() if topic.presence is Presence.THERE]
        if not there:
            return topics
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in there]
        futures = cast(
            "Mapping[ConfigResource, Future[Any]]",
            self._client.describe_configs(resources, request_timeout=self._left.call_s),
        )
        done, failed = self._left.answers(futures)
        settings = {
            resource.name: {name: entry.value for name, entry in entries.items() if entry.value is not None}
            for resource, entries in done.items()
        }
        for resource, error in failed.items():
            self.unread.append(Unread(f"settings of {resource.name}", why(error)))
        return {name: _replaced(topic, config=settings.get(name)) for name, topic in topics.items()}

    def first_offsets(self, places: Collection[Place]) -> dict[Place, int]:
        """Give each partition's first offset; those that were not told are left out."""
        return self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # the client has no types there

    def end_offsets(self, places: Collection[Place]) -> dict[Place, int]:
        """Give the offset after each partition's last. The embedded broker's is too low, by up to a batch."""
        return self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # as above

    def _offsets(self, places: Collection[Place], spec: OffsetSpec | None) -> dict[Place, int]:
        if not places or spec is None:
            return {}
        asked = {TopicPartition(*place): spec for place in places}
        futures = cast(
            "Mapping[TopicPartition, Future[Any]]",
            self._client.list_offsets(asked, request_timeout=self._left.call_s),
        )
        done, failed = self._left.answers(futures)
        for at, error in failed.items():
            self.unread.append(Unread(f"offsets of {at.topic}", why(error)))
        return {(at.topic, at.partition): found.offset for at, found in done.items()}

    def groups(self, group_ids: Collection[str]) -> dict[str, GroupSeen]:
        """Describe each consumer group, and say what it has committed."""
        if not group_ids:
            return {}
        futures = cast(
            "Mapping[str, Future[Any]]",
            self._client.describe_consumer_groups(
                sorted(group_ids), include_authorized_operations=True, request_timeout=self._left.call_s
            ),
        )
        done, failed = self._left.answers(futures)
        found = {group_id: self._group(group_id, each) for group_id, each in done.items()}
        for group_id, error in failed.items():
            found[group_id] = GroupSeen(group_id, None, "", {}, problem=why(error))
        return found

    def _group(self, group_id: str, told: Any) -> GroupSeen:  # noqa: ANN401 - the client's own type is not exported
        futures = cast(
            "Mapping[str, Future[Any]]",
            self._client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group_id)], request_timeout=self._left.call_s
            ),
        )
        done, failed = self._left.answers(futures)
        committed = {
            (at.topic, at.partition): at.offset
            for each in done.values()
            for at in each.topic_partitions or ()
            if at.offset >= 0
        }
        members = len(told.members) if self._tells_members else None
        problem = next((why(error) for error in failed.values()), None)
        return GroupSeen(group_id, members, told.state.name, committed, _operations(told), problem)


def _topic(name: str, told: Any) -> TopicSeen:  # noqa: ANN401 - as above
    partitions = tuple(
        PartitionSeen(
            each.id,
            None if each.leader is None or each.leader.id < 0 else each.leader.id,
            tuple(node.id for node in each.replicas),
            tuple(node.id for node in each.isr),
        )
        for each in sorted(told.partitions, key=lambda partition: partition.id)
    )
    return TopicSeen(name, Presence.THERE, partitions, operations=_operations(told))


def _operations(told: Any) -> frozenset[str] | None:  # noqa: ANN401 - as above
    found = told.authorized_operations
    return None if found is None else frozenset(operation.name for operation in found)


def _absence(error: BaseException) -> Presence | None:
    first = error.args[0] if error.args else None
    if not isinstance(first, KafkaError):
        return None
    if first.code() in _DENIED:
        return Presence.DENIED
    return Presence.MISSING if first.code() == KafkaError.UNKNOWN_TOPIC_OR_PART else None


def _replaced(topic: TopicSeen, config: Mapping[str, str] | None) -> TopicSeen:
    return TopicSeen(topic.name, topic.presence, topic.partitions, config, topic.operations)
