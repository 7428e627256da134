"""Reads whole topics from their beginning, then tails them: how every part learns the newest record of each key.

    waiting for topics ──► assigned at BEGINNING ──► every partition said EOF: caught_up ──► tailing

Start-up ends by partition EOF, never by a watermark: transaction markers shift watermarks, and the embedded broker's
are wrong. Only committed records are handed out (all of them on the embedded broker, whose word on that cannot be
trusted), in the order of their partition. Partitions are those found first: new ones never appear, since keyed topics
cannot be re-partitioned.

Failure mode: a broker that goes away costs nothing but time; reading goes on where it stood. Where the log no longer
holds that place, reading begins again at its beginning: old records may come twice, and folds by key bear that.

A reader that needs no whole topic may begin at an instant (`from_ms`): of a log that is too long to be read.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets

MAX_POLL_RECORDS = 1_000
"""No poll hands out more: what a caller does between two polls stays bounded."""
DISCOVERY_TIMEOUT_S = 1.0
DISCOVERY_PAUSE_S = 0.1
START_TIMEOUT_S = 10.0
SAY_MISSING_S = 10.0
"""How often it is said that a topic is not there."""

_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001 - librdkafka's names for its local errors

_Place = tuple[str, int]


class CompactedReader:
    """Follows topics from their beginning. One thread at a time; nothing is started before the first poll.

    Args:
        kafka: how to reach it.
        topics: their names.
        on_error: is told what the client says of its connections.
        on_missing: is told of a topic that is not there.
        from_ms: by topic, to begin at the first record of that time or later instead; at its end where there is none
            (at its beginning on the embedded broker, which cannot tell).
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Sequence[str],
        *,
        on_error: Callable[[str], None] | None = None,
        on_missing: Callable[[str], None] | None = None,
        from_ms: Mapping[str, int] | None = None,
    ) -> None:
        self._kafka = kafka
        self._from_ms = from_ms or {}
        self._topics = tuple(topics)
        self._on_error = on_error
        self._on_missing = on_missing
        self._missing_said_s = 0.0
        self._consumer: Consumer | None = None
        self._assigned = False
        self._next: dict[_Place, int] = {}
        self._unread: set[_Place] = set()

    @property
    def caught_up(self) -> bool:
        """Whether the end of every partition has been reached once. Stays true."""
        return bool(self._next) and not self._unread

    def positions(self) -> tuple[InputOffsets, ...]:
        """Give the next offset of each partition, in topic and partition order: what poll() handed out lies below.

        A partition of which nothing was handed out is at 0; a topic that was not found yet has no partitions.
        """
        return tuple(
            InputOffsets(topic, tuple(self._next[place] for place in sorted(self._next) if place[0] == topic))
            for topic in self._topics
        )

    def poll(self, timeout_s: float) -> list[RawRecord]:
        """Give the next committed records, at most MAX_POLL_RECORDS, as soon as there is one.

        Returns an empty list when nothing came within `timeout_s`, and at once when the last partition's end is
        reached. Never raises for a broker that is away; what the client says of it goes to `on_error`. Nor for a topic
        that is not there: it is waited for, and `on_missing` is told.
        """
        deadline = time.monotonic() + timeout_s
        consumer = self._started()
        if not self._assigned and not self._assign(consumer, deadline):
            return []
        while True:
            was_caught_up = self.caught_up
            message = consumer.poll(max(0.0, deadline - time.monotonic()))
            messages = [] if message is None else [message, *self._waiting(consumer)]
            records = [record for each in messages if (record := self._taken(each)) is not None]
            if records or self.caught_up != was_caught_up or not self._assigned or time.monotonic() >= deadline:
                return records

    def close(self) -> None:
        """Let the client go. Polling again starts at the beginning."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._assigned = None, False
        self._next.clear()
        self._unread.clear()

    def _started(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(consumer_options(self._kafka, error_cb=self._client_error))
        return self._consumer

    def _assign(self, consumer: Consumer, deadline: float) -> bool:
        """Assign every partition once all topics are there; False where they were not by the deadline."""
        while True:
            found = self._partitions(consumer, max(0.01, min(DISCOVERY_TIMEOUT_S, deadline - time.monotonic())))
            if found is not None:
                break
            if time.monotonic() + DISCOVERY_PAUSE_S >= deadline:
                consumer.poll(max(0.0, deadline - time.monotonic()))  # serves error_cb
                return False
            consumer.poll(DISCOVERY_PAUSE_S)
        starts: Mapping[_Place, int] = {}
        if not self._next:
            starts = self._starts(consumer, found)
            self._next = dict.fromkeys(found, 0)
            self._unread = set(found)
        begins = {place: starts.get(place) or self._next[place] or OFFSET_BEGINNING for place in sorted(self._next)}
        consumer.assign([TopicPartition(*place, offset) for place, offset in begins.items()])
        self._assigned = True
        return True

    def _starts(self, consumer: Consumer, found: Sequence[_Place]) -> Mapping[_Place, int]:
        """Give where to begin by time; where no record is of that time or later, that is the partition's end."""
        asked = [TopicPartition(*place, self._from_ms[place[0]]) for place in found if place[0] in self._from_ms]
        if not asked:
            return {}
        try:
            found_at = consumer.offsets_for_times(asked, timeout=START_TIMEOUT_S)
        except KafkaException as error:  # from the beginning, then: longer, and the same in the end
            self._report(_sentence(error))
            return {}
        return {(place.topic, place.partition): place.offset for place in found_at}

    def _partitions(self, consumer: Consumer, timeout_s: float) -> list[_Place] | None:
        places: list[_Place] = []
        for topic in self._topics:
            try:
                found = consumer.list_topics(topic, timeout=timeout_s).topics.get(topic)
            except KafkaException as error:
                self._report(f"{topic}: {_sentence(error)}")
                return None
            if found is None or found.error is not None or not found.partitions:
                self._report_missing(topic)
                return None
            places += [(topic, partition) for partition in found.partitions]
        return places

    def _waiting(self, consumer: Consumer) -> list[Message]:
        with suppress(KafkaException):
            return consumer.consume(MAX_POLL_RECORDS - 1, 0)
        return []

    def _taken(self, message: Message) -> RawRecord | None:
        error = message.error()
        place = (message.topic() or "", message.partition() or 0)
        if error is None:
            record = raw_record(message)
            self._next[place] = record.offset + 1
            return record
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name for the end of a partition
            self._unread.discard(place)
        else:
            self._report(f"{place[0]}[{place[1]}]: {error.str()}")
            if error.code() in _GONE:
                self._assigned = False
        return None

    def _client_error(self, error: KafkaError) -> None:
        self._report(error.str())

    def _report_missing(self, topic: str) -> None:
        """Say it at once, and again while it lasts; discovery asks many times a second."""
        now_s = time.monotonic()
        if self._on_missing is not None and now_s >= self._missing_said_s:
            self._missing_said_s = now_s + SAY_MISSING_S
            address = self._kafka.bootstrap_servers
            self._on_missing(f"no topic {topic} at {address}: run `headrace topics apply`; waiting for it")

    def _report(self, sentence: str) -> None:
        if self._on_error is not None:
            self._on_error(sentence)


def _sentence(error: KafkaException) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
