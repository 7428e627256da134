"""A folder of history -> back onto a broker: the same partition, key, value and headers, under this prefix's names.

A broker gives its own offsets, and to signals its own timestamps; each record carries the old ones in two headers, so
that a range read from there is the range that was exported; what an import that was run twice brings twice counts once.
For a broker of one's own: on one that works, live workers would take the old records for news.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from headrace.replay.core.history import DamagedError, HistoryError
from headrace.replay.sources.folder import HistoryFolder
from headrace.replay.sources.kafka_range import OFFSET_HEADER, TIMESTAMP_HEADER
from headrace.schemas.bus.clients import admin_client, producer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import ROLES, Topic, TopicSettings, topic_table

ASK_S = 10.0
FLUSH_S = 60.0
FULL_PAUSE_S = 0.05
TELL_EVERY = 10_000


class Restorer:
    """Publishes a folder's records. Use once."""

    def __init__(self, kafka: KafkaSettings, topics: TopicSettings, told: Callable[[str, int], None]) -> None:
        self._kafka = kafka
        self._topics = topic_table(topics)
        self._told = told
        self._failed: list[str] = []

    def restore(self, folder: Path) -> Mapping[str, int]:
        """Publish everything; gives how many records each role got.

        Nothing is published before every file has been read to its end. The team's own topics are not ours to fill.

        Raises:
            HistoryError: a topic is missing or has fewer partitions than the history, a file is missing or damaged, or
                the broker did not take all.
        """
        history = HistoryFolder(folder)
        held = [role for role in ROLES if history.places(role)]
        problems = [*self._problems(history, held), *self._damaged(history, held)]
        if problems:
            raise HistoryError("; ".join(problems))
        producer = Producer(producer_options(self._kafka))
        counts: dict[str, int] = {}
        for role in held:
            for place in history.places(role):
                for record in history.read(place):
                    self._put(producer, self._topics[role].name, record)
                    counts[role] = counts.get(role, 0) + 1
                    if counts[role] % TELL_EVERY == 0:
                        self._told(self._topics[role].name, counts[role])
        left = producer.flush(FLUSH_S)
        if left or self._failed:
            raise HistoryError(f"{left + len(self._failed)} records were not taken: {', '.join(self._failed[:1])}")
        return counts

    def _problems(self, history: HistoryFolder, held: Sequence[str]) -> list[str]:
        there = admin_client(self._kafka).list_topics(timeout=ASK_S).topics
        problems: list[str] = []
        for role in held:
            topic: Topic = self._topics[role]
            found = there.get(topic.name)
            most = max(partition for _, partition in history.places(role)) + 1
            if found is None or found.error is not None:
                problems.append(f"no topic {topic.name}: run `headrace topics apply`")
            elif len(found.partitions) < most:
                problems.append(
                    f"{topic.name} has {len(found.partitions)} partitions; the history has {most}: "
                    "import under a prefix that is new, whose topics `headrace topics apply` made with "
                    f"topics.partitions={history.manifest.topics.partitions}"
                )
        return problems

    def _damaged(self, history: HistoryFolder, held: Sequence[str]) -> list[str]:
        problems: list[str] = []
        for place in [place for role in held for place in history.places(role)]:
            self._told(f"reading {place[0]}", 0)
            try:
                for _ in history.read_batches(place):
                    pass
            except DamagedError as error:
                problems.append(str(error))
        return problems

    def _put(self, producer: Producer, topic: str, record: RawRecord) -> None:
        headers: list[tuple[str, str | bytes | None]] = [
            *record.headers,
            (OFFSET_HEADER, str(record.offset).encode()),
            (TIMESTAMP_HEADER, str(record.timestamp_ms).encode()),
        ]
        while True:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp_ms,
                    headers=headers,
                    on_delivery=self._delivered,
                )
            except BufferError:
                producer.poll(FULL_PAUSE_S)
            else:
                producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error.str())
