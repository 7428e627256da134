"""Writes sets of records that appear together or not at all, by one writer at a time.

    new ── init() ──► ready ── publish_all() ──► Committed | Failed (stays ready, or needs init() again) | Fenced

The transactional id is the pen: init() takes it from whoever held it, and the older writer's next commit comes back as
Fenced. Only the leader may call init(), or two writers would fence each other for ever. And where it lost
the pen by a failure, it must first see that nobody has replaced it: a commit that met a younger writer may time out.

Failure mode: a commit whose answer was lost may or may not have happened (`Failed.in_doubt`); the caller reads the
topic again before it decides. An open transaction of a killed writer holds back readers until the next init(), or until
the broker ends it: at its next look after TRANSACTION_TIMEOUT_MS, and Kafka looks every ten seconds where nothing else
is set. The embedded broker ends none, and may forget to end one whose writer is fenced in the midst of a set: it is
read without waiting for what is open (`clients`).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.schemas.bus.clients import producer_options
from headrace.schemas.bus.settings import KafkaSettings

INIT_TIMEOUT_S = 30.0
COMMIT_TIMEOUT_S = 10.0
CALL_TIMEOUT_S = 2.0
QUEUE_PAUSE_S = 0.05

Outgoing = tuple[str, bytes, bytes | None]
"""Topic, key, value; None as value is a tombstone."""

_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001 - librdkafka's name


@dataclass(frozen=True, slots=True)
class Ready:
    """This writer holds the pen; every older one is fenced."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Every record of the set is visible."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """A younger writer has taken the pen: nothing of the set is visible, and init() would take it back."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The set was not published. `in_doubt`: the commit's answer was lost, so that it may be visible after all.

    `needs_init`: publish_all() keeps failing until init() is called again.
    """

    reason: str
    in_doubt: bool = False
    needs_init: bool = False


class TransactionalPublisher:
    """The one writer of its topics. One thread at a time; nothing is started before init()."""

    def __init__(
        self, kafka: KafkaSettings, transactional_id: str, *, on_error: Callable[[str], None] | None = None
    ) -> None:
        self._kafka = kafka
        self._transactional_id = transactional_id
        self._on_error = on_error
        self._producer: Producer | None = None

    def init(self, timeout_s: float = INIT_TIMEOUT_S) -> Ready | Failed:
        """Take the pen: fence every older writer of this transactional id and finish what it left open.

        Waits for the broker at most `timeout_s`. May be called again after a failure.
        """
        self.close()
        options = producer_options(self._kafka, self._transactional_id) | {"error_cb": self._client_error}
        producer = Producer(options)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                producer.init_transactions(max(0.1, min(CALL_TIMEOUT_S, deadline - time.monotonic())))
            except KafkaException as exception:
                error = _error_of(exception)
                if not error.retriable() or time.monotonic() >= deadline:
                    return Failed(error.str(), needs_init=True)
            else:
                self._producer = producer
                return Ready()

    def publish_all(
        self, records: Sequence[Outgoing], timeout_s: float = COMMIT_TIMEOUT_S
    ) -> Committed | Fenced | Failed:
        """Write the records in their order and commit them as one; returns within about `timeout_s`.

        An empty set commits at once. Per partition the order is the order given, so a record put last is read last.
        """
        if self._producer is None:
            return Failed("this writer does not hold the pen: init() first", needs_init=True)
        if not records:
            return Committed()
        deadline = time.monotonic() + timeout_s
        try:
            self._producer.begin_transaction()
            if not _produce_all(self._producer, records, deadline):
                return self._abort("the queue stayed full: the broker is away or too slow")
        except KafkaException as exception:
            return self._failed(_error_of(exception))
        return self._commit(self._producer, deadline)

    def close(self) -> None:
        """Let the client go; an open transaction is aborted where the broker can still be told."""
        if self._producer is not None:
            self._producer.purge()
        self._producer = None

    def _commit(self, producer: Producer, deadline: float) -> Committed | Fenced | Failed:
        while True:
            try:
                producer.commit_transaction(max(0.1, min(CALL_TIMEOUT_S, deadline - time.monotonic())))
            except KafkaException as exception:
                error = _error_of(exception)
                if not error.retriable():
                    return self._failed(error)
                if time.monotonic() >= deadline:
                    # Only the same call may be made again, and its outcome is the broker's secret until then.
                    self.close()
                    return Failed(f"commit timed out: {error.str()}", in_doubt=True, needs_init=True)
            else:
                return Committed()

    def _failed(self, error: KafkaError) -> Fenced | Failed:
        if error.code() in _FENCED:
            self.close()
            return Fenced(error.str())
        if error.txn_requires_abort() or error.code() == KafkaError._FATAL:  # noqa: SLF001 - librdkafka's name
            # A producer that was fenced says so to no more than its transaction's calls: to the others it is broken.
            return self._abort(error.str())
        self.close()
        return Failed(error.str(), in_doubt=True, needs_init=True)

    def _abort(self, reason: str) -> Fenced | Failed:
        if self._producer is None:
            return Failed(reason, needs_init=True)
        try:
            self._producer.abort_transaction(CALL_TIMEOUT_S)
        except KafkaException as exception:
            error = _error_of(exception)
            self.close()
            if error.code() in _FENCED:
                return Fenced(error.str())
            return Failed(f"{reason}; abort: {error.str()}", needs_init=True)
        return Failed(reason)

    def _client_error(self, error: KafkaError) -> None:
        if self._on_error is not None:
            self._on_error(error.str())


def _produce_all(producer: Producer, records: Sequence[Outgoing], deadline: float) -> bool:
    """Queue every record, waiting for room where the queue is full; False where there was none by the deadline."""
    for topic, key, value in records:
        while True:
            try:
                producer.produce(topic, value=value, key=key)
            except BufferError:
                if time.monotonic() >= deadline:
                    return False
                producer.poll(QUEUE_PAUSE_S)
            else:
                break
    return True


def _error_of(exception: KafkaException) -> KafkaError:
    first = exception.args[0]
    return first if isinstance(first, KafkaError) else KafkaError(KafkaError._FAIL, str(first))  # noqa: SLF001 - librdkafka's name
