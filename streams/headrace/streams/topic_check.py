"""The topics are there, and a state topic has as many partitions as its signals: checked before anything is read.

With another count Faust's agent skips every event while the worker stays alive; so the start fails, and says why.
"""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError
from headrace.schemas.log import Log
from headrace.schemas.topics import DEAD_LETTERS, FLEET, STATE_OF, Topic, TopicSettings, topic_table

PAUSE_S = 0.2
ASK_S = 1.0
"""Also how long a stop may wait."""
SAY_AGAIN_S = 10.0


class TopicsError(HeadraceError):
    """The topics are not what the streams need."""


def wait_for_topics(
    kafka: KafkaSettings, topics: TopicSettings, timeout_s: float, log: Log, stopped: Callable[[], bool]
) -> Mapping[str, int] | None:
    """Give the partitions of each signals topic by role, once every topic is there; None when stopped before.

    What is waited for is said at once, when it changes, and every ten seconds.

    Raises:
        TopicsError: topics are missing or the broker did not answer in time, or partitions differ.
    """
    client, table = admin_client(kafka), topic_table(topics)
    deadline = time.monotonic() + timeout_s
    said, say_again_s = "", 0.0
    while not stopped():
        found = _partitions(client)
        missing = [topic.name for topic in _needed(table) if topic.name not in (found or {})]
        if found is not None and not missing:
            return _matched(table, found)
        now_s = time.monotonic()
        silent = found is None
        waits = f"waiting for {kafka.bootstrap_servers if silent else 'topics: run `headrace topics apply`'}"
        if waits != said or now_s >= say_again_s:
            log.info(waits, **({} if silent else {"missing": missing}))
            said, say_again_s = waits, now_s + SAY_AGAIN_S
        if now_s >= deadline:
            why = "no broker answers" if silent else f"no topic {', '.join(missing)}; run `headrace topics apply`"
            raise TopicsError(f"{kafka.bootstrap_servers}: {why} (waited {timeout_s:g} s)")
        time.sleep(PAUSE_S)
    return None


def _needed(table: Mapping[str, Topic]) -> list[Topic]:
    return [table[role] for role in (*STATE_OF, *STATE_OF.values(), FLEET, DEAD_LETTERS)]


def _partitions(client: AdminClient) -> dict[str, int] | None:
    """Give the partitions of every topic, none where the broker has none yet; None where it does not answer."""
    try:
        listed = client.list_topics(timeout=ASK_S).topics
    except KafkaException:
        return None
    return {name: len(topic.partitions) for name, topic in listed.items() if topic.error is None}


def _matched(table: Mapping[str, Topic], found: Mapping[str, int]) -> Mapping[str, int]:
    problems: list[str] = []
    for signals, state in STATE_OF.items():
        has, should = found[table[state].name], found[table[signals].name]
        if has != should:
            problems.append(f"{table[state].name} has {has} partitions; {table[signals].name} has {should}")
    if problems:
        raise TopicsError(f"keyed state needs as many partitions as its signals: {'; '.join(problems)}")
    return {role: found[table[role].name] for role in STATE_OF}
