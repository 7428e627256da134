"""Writes records without ever making the caller wait: a bounded queue in front of an idempotent producer.

    publish ──► queue (bounded) ──► broker ──► delivered
       └─ queue full, or the record is too large: Dropped, counted

While the broker is away records wait in the queue, up to its bound and for at most `message.timeout.ms` (5 minutes by
default). An idempotent producer dies for good when the broker forgets what it wrote (a broker that lost its data); it
is then replaced, and what it still held counts as failed. On the embedded broker, which loses everything when it ends,
such a producer does not even die: librdkafka tries again for ever. There a record that timed out is the sign.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.schemas.bus.clients import producer_options
from headrace.schemas.bus.settings import KafkaSettings

DropReason = Literal["QUEUE_FULL", "TOO_LARGE", "CLIENT_ERROR"]


@dataclass(frozen=True, slots=True)
class Published:
    """The record is in the queue. Whether it reached the broker is counted when the broker answers."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The record was not taken."""

    reason: DropReason
    sentence: str


@dataclass(frozen=True, slots=True)
class PublisherCounts:
    """What became of the records so far: `published = delivered + failed + still queued`."""

    published: int = 0
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    replaced_producers: int = 0


PUBLISHED = Published()


class Publisher:
    """Publishes without waiting. One thread at a time; nothing is started before the first record."""

    def __init__(self, kafka: KafkaSettings, *, on_error: Callable[[str], None] | None = None) -> None:
        self._kafka = kafka
        self._on_error = on_error
        self._producer: Producer | None = None
        self._dead = False
        self._counts = PublisherCounts()

    @property
    def counts(self) -> PublisherCounts:
        """What became of the records so far."""
        return self._counts

    def publish(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Published | Dropped:
        """Queue a record; None as value is a tombstone. Never waits, never raises for a broker that is away.

        `timestamp_ms` None lets the client stamp the record with its own clock.
        """
        producer = self._started()
        producer.poll(0)
        for attempt in (1, 2):
            try:
                producer.produce(
                    topic,
                    value=value,
                    key=key,
                    timestamp=timestamp_ms or 0,
                    headers=list(headers),
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                producer.poll(0)
                if attempt == 2:
                    return self._drop("QUEUE_FULL", "the queue is full: the broker is away or too slow")
            except KafkaException as error:
                return self._refused(error)
            else:
                break
        self._counts = replace(self._counts, published=self._counts.published + 1)
        return PUBLISHED

    def flush(self, timeout_s: float) -> int:
        """Wait until every queued record was answered, at most `timeout_s`; gives how many still wait."""
        return 0 if self._producer is None else self._producer.flush(timeout_s)

    def close(self, timeout_s: float = 5.0) -> int:
        """Flush and let the client go; gives how many records were lost by that."""
        lost = self.flush(timeout_s)
        self._producer = None
        return lost

    def _started(self) -> Producer:
        if self._producer is not None and self._dead:
            self._producer.purge()
            self._producer.poll(0)
            self._producer = None
            self._counts = replace(self._counts, replaced_producers=self._counts.replaced_producers + 1)
        if self._producer is None:
            self._dead = False
            self._producer = Producer(producer_options(self._kafka) | {"error_cb": self._client_error})
        return self._producer

    def _refused(self, error: KafkaException) -> Dropped:
        reason = error.args[0]
        if not isinstance(reason, KafkaError):
            return self._drop("CLIENT_ERROR", str(error))
        self._dead = self._dead or reason.fatal()
        if reason.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return self._drop("TOO_LARGE", reason.str())
        return self._drop("CLIENT_ERROR", reason.str())

    def _drop(self, reason: DropReason, sentence: str) -> Dropped:
        self._counts = replace(self._counts, dropped=self._counts.dropped + 1)
        return Dropped(reason, sentence)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._counts = replace(self._counts, delivered=self._counts.delivered + 1)
        else:
            self._counts = replace(self._counts, failed=self._counts.failed + 1)
            if self._kafka.broker == "embedded" and error.code() == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001 - librdkafka's name
                self._dead = True

    def _client_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - librdkafka's name for a dead producer
            self._dead = True
        if self._on_error is not None:
            self._on_error(error.str())
