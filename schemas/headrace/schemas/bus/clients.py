"""Options of the librdkafka clients, in one place: murmur2, idempotent, acks=all; read_committed, partition EOF.

    precedence: headrace's defaults < KafkaSettings.options < what headrace's correctness rests on < the caller's

librdkafka's own default partitioner is CRC-32, Java's and Faust's is murmur2; keyed state would be split over two
partitions, so every producer here is murmur2. All queues are bounded. What librdkafka itself logs goes to the logger
`headrace.kafka`, which is silent until an application configures it.
"""

import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from headrace.schemas.bus.settings import KafkaSettings

Options = dict[str, Any]

MAX_QUEUED_MESSAGES = 100_000
MAX_QUEUED_KBYTES = 65_536
MAX_FETCHED_KBYTES = 32_768
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
TRANSACTION_TIMEOUT_MS = 10_000
"""After this long a broker may end what a killed writer left open, which holds back its readers."""
EMBEDDED_SESSION_TIMEOUT_MS = 6_000
"""The embedded broker's first join of a group takes half of this."""

LOGGER = logging.getLogger("headrace.kafka")
LOGGER.addHandler(logging.NullHandler())

EMBEDDED_MESSAGE_TIMEOUT_MS = 5_000
"""How long a record waits for the embedded broker: when that was away it has forgotten its topics anyway."""

_COMMON: Options = {
    # Errors reach the caller as outcomes and through error_cb; librdkafka must not also write them to standard error.
    "logger": LOGGER,
    "log_level": 3,
    "log.connection.close": False,
    "socket.keepalive.enable": True,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
}
_CONSUMER: Options = {
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 50,
    "fetch.error.backoff.ms": 100,
    "queued.max.messages.kbytes": MAX_FETCHED_KBYTES,
}
_CONSUMER_FIXED: Options = {
    "isolation.level": "read_committed",  # but for the embedded broker: `_isolation`
    "enable.partition.eof": True,
    "enable.auto.commit": False,
}
_PRODUCER: Options = {
    "linger.ms": 5,
    "compression.type": "lz4",
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "queue.buffering.max.messages": MAX_QUEUED_MESSAGES,
    "queue.buffering.max.kbytes": MAX_QUEUED_KBYTES,
}
_PRODUCER_FIXED: Options = {"partitioner": "murmur2_random", "enable.idempotence": True, "acks": "all"}


def consumer_options(kafka: KafkaSettings, group_id: str | None = None, **more: object) -> Options:
    """Give the options of a consumer; `more` are librdkafka options or callbacks and win: `**{"fetch.min.bytes": 1}`.

    Args:
        kafka: how to reach Kafka.
        group_id: the consumer group; None for a reader that is assigned its partitions and commits nothing.
        more: what else this consumer needs.
    """
    group = {"group.id": f"{kafka.client_id}-unused" if group_id is None else group_id}
    if group_id is not None and kafka.broker == "embedded":
        group["session.timeout.ms"] = str(EMBEDDED_SESSION_TIMEOUT_MS)
    return _address(kafka) | _CONSUMER | group | dict(kafka.options) | _CONSUMER_FIXED | _isolation(kafka) | more


def producer_options(kafka: KafkaSettings, transactional_id: str | None = None) -> Options:
    """Give the options of a producer: murmur2, idempotent, acks=all, bounded; transactional where an id is given."""
    limits: Options = {"message.timeout.ms": EMBEDDED_MESSAGE_TIMEOUT_MS} if kafka.broker == "embedded" else {}
    options = _address(kafka) | _PRODUCER | limits | dict(kafka.options) | _PRODUCER_FIXED
    if transactional_id is not None:
        options |= {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
        }
    return options


def admin_client(kafka: KafkaSettings, *, on_error: Callable[[KafkaError], None] | None = None) -> AdminClient:
    """Give a client that creates and describes topics. It connects at its first call, not here.

    Args:
        kafka: how to reach Kafka.
        on_error: is told what the client says of its connections, whenever the client is polled.
    """
    watched: Options = {} if on_error is None else {"error_cb": on_error}
    return AdminClient(_address(kafka) | dict(kafka.options) | watched)


def _isolation(kafka: KafkaSettings) -> Options:
    """The embedded broker is read without waiting for what is open.

    Its last stable offset may stand still for good where a writer is fenced in the midst of a set, and does where one
    is killed and nobody takes its pen. It hides no aborted record anyway: a set is proved by epoch and digest (0006).
    """
    return {"isolation.level": "read_uncommitted"} if kafka.broker == "embedded" else {}


def _address(kafka: KafkaSettings) -> Options:
    return _COMMON | {"bootstrap.servers": kafka.bootstrap_servers, "client.id": kafka.client_id}
