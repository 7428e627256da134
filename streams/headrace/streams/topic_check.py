"""The topics are there, and a state topic has as many partitions as its signals: checked before anything is read.

With another count Faust's agent skips every event while the worker stays alive; so the start fails, and says why.
"""

import time
from collections.abc import Mapping
from contextlib import suppress

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.topics import DEAD_LETTERS, FLEET, STATE_OF, Topic, TopicSettings, topic_table

PAUSE_S = 0.2
ASK_S = 5.0


class TopicsError(HeadraceError):
    """The topics are not what the streams need."""


def wait_for_topics(kafka: KafkaSettings, topics: TopicSettings, timeout_s: float) -> Mapping[str, int]:
    """Give the partitions of each signals topic by role, once every topic is there.

    Raises:
        TopicsError: topics are missing or the broker did not answer in time, or partitions differ.
    """
    client, table = admin_client(kafka), topic_table(topics)
    deadline = time.monotonic() + timeout_s
    while True:
        found = _partitions(client)
        missing = [topic.name for topic in _needed(table) if topic.name not in found]
        if not missing:
            return _matched(table, found)
        if time.monotonic() >= deadline:
            why = f"no topic {', '.join(missing)}; run `headrace topics apply`" if found else "no broker answers"
            raise TopicsError(f"{kafka.bootstrap_servers}: {why} (waited {timeout_s:g} s)")
        time.sleep(PAUSE_S)


def _needed(table: Mapping[str, Topic]) -> list[Topic]:
    return [table[role] for role in (*STATE_OF, *STATE_OF.values(), FLEET, DEAD_LETTERS)]


def _partitions(client: AdminClient) -> dict[str, int]:
    with suppress(KafkaException):
        listed = client.list_topics(timeout=ASK_S).topics
        return {name: len(topic.partitions) for name, topic in listed.items() if topic.error is None}
    return {}


def _matched(table: Mapping[str, Topic], found: Mapping[str, int]) -> Mapping[str, int]:
    problems: list[str] = []
    for signals, state in STATE_OF.items():
        has, should = found[table[state].name], found[table[signals].name]
        if has != should:
            problems.append(f"{table[state].name} has {has} partitions; {table[signals].name} has {should}")
    if problems:
        raise TopicsError(f"keyed state needs as many partitions as its signals: {'; '.join(problems)}")
    return {role: found[table[role].name] for role in STATE_OF}
