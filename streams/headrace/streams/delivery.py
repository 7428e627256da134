"""States to Kafka, each confirmed by the broker before anything that depends on it is acknowledged.

Faust's table buffers its changelog writes and its flush gives up after a tenth of a second, so neither says that a
state is safe. Here every record's own delivery is awaited; what failed is sent again, whole, until it is delivered: a
state that is written twice says the same, and a broker that is away costs time alone. What is too large will be so for
ever: it is given up, and said. Dead letters and states are bounded, so it happens where a topic's limit was lowered.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from aiokafka.errors import (  # type: ignore[import-untyped]  # aiokafka ships no types
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from faust.exceptions import ProducerSendError
from faust.types.transports import ProducerT

from headrace.schemas.log import Log

RETRY_S = 0.5
TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class Outgoing(NamedTuple):
    """One record; `value` None is a tombstone."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None


async def deliver(producer: ProducerT, records: Sequence[Outgoing], log: Log) -> None:
    """Send records in order and return once each of them is at the broker, or refused for its size.

    Tries for ever, and says so.
    """
    waiting = list(records)
    while waiting:
        sent = [await _send(producer, record) for record in waiting]
        outcomes: list[object] = await asyncio.gather(*sent, return_exceptions=True)
        failed = [(record, o) for record, o in zip(waiting, outcomes, strict=True) if isinstance(o, Exception)]
        for record, error in failed:
            if is_too_large(error):
                say_given_up(log, record.topic, record.value)
        failed = [(record, error) for record, error in failed if not is_too_large(error)]
        waiting = [record for record, _ in failed]
        if failed:
            log.warning("records not delivered, sending again", records=len(failed), error=repr(failed[0][1]))
            await asyncio.sleep(RETRY_S)


def say_given_up(log: Log, topic: str, value: bytes | None) -> None:
    """Say that a record is left out: its topic takes none of its size."""
    log.error("record is larger than its topic takes: given up", topic=topic, bytes=len(value or b""))


def is_too_large(error: BaseException | None) -> bool:
    """Say whether a failure, or what Faust made it of, is one of size."""
    while error is not None and not isinstance(error, TOO_LARGE):
        error = error.__cause__ or error.__context__
    return error is not None


async def _send(producer: ProducerT, record: Outgoing) -> Awaitable[object]:
    try:
        return await producer.send(record.topic, record.key, record.value, record.partition, None, None)
    except ProducerSendError as error:
        failed: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        failed.set_exception(error)
        return failed
