"""Who may take the pen: the member of a consumer group that is given the weights topic's one partition.

    joining ──assigned──► leading ──revoked, lost, resign()──► standing by ──assigned──► leading ...

The group only says who should write; that nobody else can is the transactional id's part (`publish`). A leader that is
killed is replaced when its session times out; one that stops leaves the group, and is replaced at once. Sticky
assignment, so a third worker that joins takes nothing from the leader.

Failure mode: with the broker away for longer than the session, nobody leads; the group forms again by itself. On the
embedded broker a leader that leaves while the group is still forming stays its leader on paper, and nobody follows it:
there, a second worker is for tests.
"""

import time
from collections.abc import Callable
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.settings import KafkaSettings


class Leadership(Protocol):
    """Says whether this worker leads."""

    def leads(self) -> bool:
        """Serve the group and say whether this worker leads now. Does not wait."""
        ...

    def resign(self) -> bool:
        """Stand back after being fenced; False where nobody could say when to come back."""
        ...

    def close(self) -> None:
        """Leave, so that another may lead at once."""
        ...


class SoleLeadership:
    """Always leads: the worker that started last fences the others."""

    def leads(self) -> bool:
        """Give True."""
        return True

    def resign(self) -> bool:
        """Give False: a sole worker that was fenced has been replaced for good."""
        return False

    def close(self) -> None:
        """Do nothing."""


class GroupLeadership:
    """Leads while the consumer group gives this worker the weights topic's partition. One thread at a time."""

    def __init__(
        self, kafka: KafkaSettings, topic: str, session_ms: int, on_error: Callable[[str], None] | None = None
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._session_ms = session_ms
        self._on_error = on_error
        self._consumer: Consumer | None = None
        self._leads = False
        self._rejoin_at_s = 0.0

    def leads(self) -> bool:
        """Serve the group and say whether this worker leads now. Does not wait."""
        if self._consumer is None:
            if time.monotonic() < self._rejoin_at_s:
                return False
            self._consumer = self._joined()
        # The partition is paused, so that only the group's own events come; a bound all the same.
        for _ in range(16):
            message = self._consumer.poll(0)
            if message is None:
                break
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
                self._report(error)
        return self._leads

    def resign(self) -> bool:
        """Leave the group for one session, so that two workers do not fence each other in turns; gives True."""
        self.close()
        self._rejoin_at_s = time.monotonic() + self._session_ms / 1000
        return True

    def close(self) -> None:
        """Leave the group, so that another may lead at once."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._leads = None, False

    def _joined(self) -> Consumer:
        consumer = Consumer(
            consumer_options(
                self._kafka,
                group_id=f"{self._topic}.leader",
                error_cb=self._report,
                **{
                    "session.timeout.ms": self._session_ms,
                    "heartbeat.interval.ms": self._session_ms // 4,
                    "partition.assignment.strategy": "cooperative-sticky",
                },
            )
        )
        consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        return consumer

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        if partitions:
            consumer.pause(partitions)
            self._leads = True

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._leads = False
        try:
            consumer.incremental_unassign(partitions)
        except KafkaException as exception:
            self._report(exception.args[0])

    def _report(self, error: KafkaError) -> None:
        if self._on_error is not None:
            self._on_error(error.str())
