"""The fleet on Kafka: engines and profiles published, listed and removed. Operators own these two topics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.infra.configuration.tree import nearest
from headrace.infra.fleet_records.file import FleetFile
from headrace.infra.kafka_edge import require_topics
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.publisher import Dropped, Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode, encode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.errors import HeadraceError, InvalidInputError
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.overrides import is_override_key
from headrace.schemas.topics import FLEET, PROFILES, TopicSettings, topic_table

PUBLISH_TIMEOUT_S = 30.0
NO_PROFILES = "no profiles are published; add [[profiles]]: see `headrace fleet apply --form`"
NO_ENGINES = "no engines are published; see `headrace fleet apply --form`"

R = TypeVar("R")
Outgoing = tuple[str, bytes, bytes | None]


class UnpublishedError(HeadraceError):
    """Some records did not reach the broker."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is on the topics. `unreadable` says for each record that is no engine or profile where it is and why."""

    engines: tuple[EngineSpec, ...]
    profiles: tuple[LatencyProfile, ...]
    unreadable: tuple[str, ...]


def read_fleet(kafka: KafkaSettings, topics: TopicSettings) -> Fleet:
    """Read both topics to their ends; engines and profiles sorted by id."""
    table = topic_table(topics)
    unreadable: list[str] = []
    profiles = tuple(_records(LatencyProfile, kafka, table[PROFILES].name, unreadable))
    engines = tuple(_records(EngineSpec, kafka, table[FLEET].name, unreadable))
    return Fleet(engines, profiles, tuple(unreadable))


def _records(kind: type[R], kafka: KafkaSettings, topic: str, unreadable: list[str]) -> Iterator[R]:
    for key, record in read_latest(kafka, topic).items():
        if is_override_key(key):
            continue
        found = decode(kind, record.value, record.headers)
        if isinstance(found, Rejected):
            unreadable.append(f"{topic}, key {key!r}, offset {record.offset}: {found.reason}: {found.detail}")
        else:
            yield found


def publish_fleet(kafka: KafkaSettings, topics: TopicSettings, fleet: FleetFile) -> None:
    """Publish every engine and profile of the file; profiles first, so that no engine is without its own.

    Raises:
        InvalidInputError: an engine names a profile that is neither in the file nor on the topic.
        UnreachableError, MissingTopicError: the broker does not answer, or has no such topics.
        UnpublishedError: the broker did not take all of them.
    """
    table = topic_table(topics)
    require_topics(kafka, (table[PROFILES].name, table[FLEET].name))
    known = {profile.profile_id for profile in fleet.profiles}
    wanted = {engine.profile_id for engine in fleet.engines}
    if not wanted <= known:
        known |= {profile.profile_id for profile in read_fleet(kafka, topics).profiles}
    problems = [
        f"{engine.engine_id}: profile_id is {engine.profile_id!r}, which is neither in the file nor on the topic; "
        + (nearest(engine.profile_id, sorted(known)) if known else NO_PROFILES)
        for engine in fleet.engines
        if engine.profile_id not in known
    ]
    if problems:
        raise InvalidInputError("fleet", tuple(problems))
    profiles = [(table[PROFILES].name, profile.key, encode(profile)) for profile in fleet.profiles]
    engines = [(table[FLEET].name, engine.key, encode(engine)) for engine in fleet.engines]
    for records in (profiles, engines):
        publish_records(kafka, records)


def left_out(published: Sequence[EngineSpec], fleet: FleetFile) -> tuple[str, ...]:
    """Give the ids of published engines that a file does not name: applying it leaves them as they are."""
    named = {engine.engine_id for engine in fleet.engines}
    return tuple(engine.engine_id for engine in published if engine.engine_id not in named)


def remove_engines(kafka: KafkaSettings, topics: TopicSettings, engine_ids: Sequence[str]) -> None:
    """Write a tombstone for each engine: its state and its weights go with it.

    Raises:
        InvalidInputError: there is no such engine; the message names the nearest.
        UnpublishedError: the broker did not take all of them.
    """
    known = [engine.engine_id for engine in read_fleet(kafka, topics).engines]
    problems = [
        f"{name!r} is no engine of the fleet; {nearest(name, known) if known else NO_ENGINES}"
        for name in engine_ids
        if name not in known
    ]
    if problems:
        raise InvalidInputError("fleet", tuple(problems))
    publish_records(kafka, [(topic_table(topics)[FLEET].name, name.encode(), None) for name in engine_ids])


def publish_records(kafka: KafkaSettings, records: Sequence[Outgoing]) -> None:
    """Publish records as (topic, key, value).

    Raises:
        UnpublishedError: the broker did not take all of them.
    """
    said: list[str] = []
    publisher = Publisher(kafka, on_error=said.append)
    for topic, key, value in records:
        outcome = publisher.publish(topic, key, value)
        if isinstance(outcome, Dropped):
            said.append(f"{key!r}: {outcome.sentence}")
    publisher.close(PUBLISH_TIMEOUT_S)
    lost = len(records) - publisher.counts.delivered
    if lost:
        raise UnpublishedError(
            f"{lost} of {len(records)} records were not published: {said[-1] if said else 'no answer'}"
        )
