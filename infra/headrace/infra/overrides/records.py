"""Operators' overrides on the fleet topic: judged by themselves, listed, taken back. `say` says one."""

from collections.abc import Sequence

from headrace.infra.configuration.tree import nearest
from headrace.infra.fleet_records.topics import publish_records
from headrace.infra.overrides.rules import Stands, length
from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.overrides import Override, OverrideKind, check_override, is_override_key, override_key
from headrace.schemas.topics import FLEET, TopicSettings, topic_table


def sound(override: Override) -> Override:
    """Give an override whose words, shares and length are as they must be, whatever stands.

    Raises:
        InvalidInputError: with everything that is wrong.
    """
    problems = [*check_override(override), length.broken(Stands(()), override)]
    told = tuple(problem for problem in problems if problem is not None)
    if told:
        raise InvalidInputError("override", told)
    return override


def read_overrides(kafka: KafkaSettings, topics: TopicSettings) -> tuple[Override, ...]:
    """Give every override that stands on the topic, expired ones too, by key."""
    found: list[Override] = []
    for key, record in read_latest(kafka, topic_table(topics)[FLEET].name).items():
        override = decode(Override, record.value, record.headers) if is_override_key(key) else None
        if override is not None and not isinstance(override, Rejected):
            found.append(override)
    return tuple(found)


def take_back(
    kafka: KafkaSettings, topics: TopicSettings, kind: OverrideKind, targets: Sequence[str], cluster: str | None = None
) -> None:
    """Write a tombstone for the override of each target; `cluster` is a pin's.

    Raises:
        InvalidInputError: one has none; the message says which have.
        UnreachableError, MissingTopicError, UnpublishedError: it did not reach the topic.
    """
    stand = read_overrides(kafka, topics)
    there = [override.target for override in stand if override.kind is kind and override.cluster == cluster]
    whose = "" if cluster is None else f" of {cluster}"
    problems = [
        f"{name!r} has no {kind.lower()}{whose} to take back; {nearest(name, there) if there else 'nothing has'}"
        for name in targets
        if name not in there
    ]
    if problems:
        raise InvalidInputError("override", tuple(problems))
    name = topic_table(topics)[FLEET].name
    publish_records(kafka, [(name, override_key(kind, target, cluster), None) for target in targets])
