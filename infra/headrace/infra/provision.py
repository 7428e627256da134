"""Makes the topics what the topic table says, and says what an existing topic has that differs.

    topic table ──► describe ──► differences ──► create what is missing, set what differs, name what cannot be mended

A topic's partitions and replication are never changed: keyed state cannot be re-partitioned, and moving replicas is the
cluster's own business. Settings that the table does not name are left as they are.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource  # `admin` does not export them
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from headrace.infra.kafka_edge import reason_of, require_topics
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.topics import Topic, TopicSettings, topic_table

REQUEST_TIMEOUT_S = 15.0
VISIBLE_TIMEOUT_S = 15.0

Outcome = Literal["created", "unchanged", "mended", "cannot be mended"]
K = TypeVar("K")
V = TypeVar("V")
_Configs = Mapping[ConfigResource, Future[Mapping[str, ConfigEntry]]]
_Altered = Mapping[ConfigResource, Future[None]]
_Created = Mapping[str, Future[None]]


class ProvisionError(HeadraceError):
    """The broker could not be asked, or refused; the message holds its reason."""


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """One thing in which a topic is not what it should be.

    `setting` is `topic` (it is missing), `partitions`, `replication`, or a broker's setting; `has` None = not there.
    """

    role: str
    topic: str
    setting: str
    has: str | None
    should: str

    @property
    def can_be_mended(self) -> bool:
        """Whether `apply` can mend it."""
        return self.setting not in ("partitions", "replication")

    @property
    def sentence(self) -> str:
        """What is wrong, in words."""
        if self.setting == "topic":
            return f"{self.topic} is missing"
        text = f"{self.topic}: {self.setting} is {self.has or 'not set'}; should be {self.should}"
        if self.setting == "partitions":
            text += " (cannot be mended: keyed state cannot be re-partitioned. Set topics.partitions to what the topics"
            text += " have; or stop the streams, delete the topic and its state topic, and apply again)"
        elif self.setting == "replication":
            text += " (cannot be mended here: use Kafka's own kafka-reassign-partitions)"
        return text


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What was done about one topic, with every difference that was found."""

    role: str
    topic: str
    outcome: Outcome
    differences: tuple[TopicDifference, ...]


def diff_topics(kafka: KafkaSettings, settings: TopicSettings) -> tuple[TopicDifference, ...]:
    """Give every difference between the topics as they are and as they should be; empty where there is none.

    Raises:
        UnreachableError: the broker does not answer.
        ProvisionError: it could not be asked.
    """
    require_topics(kafka, ())
    admin = admin_client(kafka)
    return tuple(_differences(admin, kafka.bootstrap_servers, tuple(topic_table(settings).values())))


def apply_topics(kafka: KafkaSettings, settings: TopicSettings) -> tuple[TopicOutcome, ...]:
    """Create what is missing, set what differs, and wait until the broker shows it; one outcome per topic.

    A topic with the wrong partitions or replication is left as it is, with the outcome `cannot be mended`; its settings
    are mended all the same. Applying twice changes nothing the second time.

    Raises:
        UnreachableError: the broker does not answer.
        ProvisionError: it could not be asked, or refused.
    """
    require_topics(kafka, ())
    admin = admin_client(kafka)
    topics = tuple(topic_table(settings).values())
    found = tuple(_differences(admin, kafka.bootstrap_servers, topics))
    by_topic = {topic.name: tuple(d for d in found if d.topic == topic.name) for topic in topics}
    outcomes: dict[str, Outcome] = {topic.name: _outcome(by_topic[topic.name]) for topic in topics}
    missing = [topic for topic in topics if outcomes[topic.name] == "created"]
    if missing:
        new = [NewTopic(t.name, t.partitions, t.replication, config=dict(t.config)) for t in missing]
        created = cast("_Created", admin.create_topics(new, request_timeout=REQUEST_TIMEOUT_S))
        # Two may apply at once: what the other one created is as good, and is compared below like all the rest.
        _all_done(created, lambda name: f"create {name}", but=KafkaError.TOPIC_ALREADY_EXISTS)
    _mend(admin, [d for d in found if d.can_be_mended and d.setting != "topic"])
    if any(d.can_be_mended for d in found):
        _wait_until_done(admin, kafka.bootstrap_servers, topics)
    return tuple(TopicOutcome(t.role, t.name, outcomes[t.name], by_topic[t.name]) for t in topics)


def _outcome(differences: Sequence[TopicDifference]) -> Outcome:
    if not differences:
        return "unchanged"
    if differences[0].setting == "topic":
        return "created"
    return "mended" if all(d.can_be_mended for d in differences) else "cannot be mended"


def _differences(admin: AdminClient, address: str, topics: Sequence[Topic]) -> Iterator[TopicDifference]:
    described = _metadata(admin, address)
    there = [topic for topic in topics if topic.name in described]
    configs = _configs(admin, there)
    for topic in topics:
        if topic.name not in described:
            yield TopicDifference(topic.role, topic.name, "topic", None, f"{topic.partitions} partitions")
            continue
        partitions = described[topic.name].partitions
        replicas = {len(partition.replicas) for partition in partitions.values()}
        has = {
            "partitions": str(len(partitions)),
            "replication": "/".join(map(str, sorted(replicas))),
            **configs[topic.name],
        }
        should = {"partitions": str(topic.partitions), "replication": str(topic.replication), **topic.config}
        for setting, value in should.items():
            if has.get(setting) != value:
                yield TopicDifference(topic.role, topic.name, setting, has.get(setting), value)


def _metadata(admin: AdminClient, address: str) -> Mapping[str, TopicMetadata]:
    try:
        return admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
    except KafkaException as error:
        raise ProvisionError(
            f"{address} did not list its topics (kafka.bootstrap_servers): {reason_of(error)}"
        ) from error


def _configs(admin: AdminClient, topics: Sequence[Topic]) -> Mapping[str, Mapping[str, str]]:
    if not topics:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    futures = cast("_Configs", admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S))
    done = _all_done(futures, lambda resource: f"describe the settings of {resource.name}")
    return {
        resource.name: {name: entry.value for name, entry in entries.items() if entry.value is not None}
        for resource, entries in done.items()
    }


def _mend(admin: AdminClient, differences: Sequence[TopicDifference]) -> None:
    changes: dict[str, list[ConfigEntry]] = {}
    for d in differences:
        entry = ConfigEntry(d.setting, d.should, incremental_operation=AlterConfigOpType.SET)
        changes.setdefault(d.topic, []).append(entry)
    if not changes:
        return
    resources = [
        ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries) for name, entries in changes.items()
    ]
    futures = cast("_Altered", admin.incremental_alter_configs(resources, request_timeout=REQUEST_TIMEOUT_S))
    _all_done(futures, lambda resource: f"set the settings of {resource.name}")


def _wait_until_done(admin: AdminClient, address: str, topics: Sequence[Topic]) -> None:
    """Wait until the broker shows what was changed: it answers a change before all its parts know of it."""
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while True:
        waiting = [each.sentence for each in _differences(admin, address, topics) if each.can_be_mended]
        if not waiting:
            return
        if time.monotonic() >= deadline:
            raise ProvisionError(f"changed, but not visible after {VISIBLE_TIMEOUT_S:g} s: {'; '.join(waiting)}")
        time.sleep(0.05)


def _all_done(
    futures: Mapping[K, Future[V]], what: Callable[[K], str], but: int = KafkaError.NO_ERROR
) -> Mapping[K, V]:
    """Wait for every request; raise once, with the reason of each that failed otherwise than with the error `but`."""
    done: dict[K, V] = {}
    failed: list[str] = []
    for key, future in futures.items():
        try:
            done[key] = future.result()
        except KafkaException as error:
            if not isinstance(error.args[0], KafkaError) or error.args[0].code() != but:
                failed.append(f"cannot {what(key)}: {reason_of(error)}")
    if failed:
        raise ProvisionError("; ".join(failed))
    return done
