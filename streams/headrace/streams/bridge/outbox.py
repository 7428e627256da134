"""Publishes a batch and waits until the broker has all of it: only then may the source's offsets be committed.

A broker that is away is waited for, as long as nobody asks to stop; a record that the broker refuses for good is told.
"""

import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.schemas.bus.clients import producer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError

POLL_S: Final = 0.05


class UndeliveredError(HeadraceError):
    """What was published did not reach the broker; the offsets of its source are not committed."""


class Outbox:
    """An idempotent producer with a count of what is under way. One thread."""

    def __init__(self, kafka: KafkaSettings) -> None:
        options = producer_options(kafka)
        if kafka.broker != "embedded":
            # A broker that is away is waited for: giving a record up would lose it, or stop the bridge.
            options = {"message.timeout.ms": 0, **options}
        self._producer = Producer({**options, "linger.ms": 2})
        self._failed: list[str] = []
        self.waiting = 0

    def put(self, topic: str, key: bytes, value: bytes) -> None:
        """Queue a record; waits where the queue is full."""
        while True:
            try:
                self._producer.produce(topic, value=value, key=key, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(POLL_S)
            except KafkaException as error:
                self._failed.append(str(error))
                return
            else:
                self.waiting += 1
                return

    def delivered(self, is_given_up: Callable[[], bool]) -> bool:
        """Wait until all is delivered; False where `is_given_up` said so before.

        Raises:
            UndeliveredError: the broker refused a record for good.
        """
        while self.waiting and not self._failed:
            self._producer.poll(POLL_S)
            if is_given_up():
                break
        if self._failed:
            raise UndeliveredError(f"not delivered: {self._failed[0]}; nothing is committed, start again")
        return not self.waiting

    def close(self) -> None:
        """Let the client go; what is still under way is dropped, and comes again from the source."""
        self._producer.purge()
        self._producer.flush(1.0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.waiting -= 1
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:  # noqa: SLF001 - librdkafka's name
            self._failed.append(error.str())


def give_up_after(seconds: float, stopped: Callable[[], bool]) -> Callable[[], bool]:
    """Give the question whether to wait no longer: that long after a stop was asked for."""
    asked: list[float] = []

    def is_given_up() -> bool:
        if not asked and stopped():
            asked.append(time.monotonic())
        return bool(asked) and time.monotonic() - asked[0] > seconds

    return is_given_up
