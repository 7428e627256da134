"""Records to Kafka, each confirmed by the broker before anything that depends on it is acknowledged.

Faust's table buffers its changelog writes and its flush gives up after a tenth of a second, so neither says that a
state is safe. Here every record's own delivery is awaited; what failed is sent again, whole, until it is delivered: a
state that is written twice says the same, and a broker that is away costs time alone.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from faust.exceptions import ProducerSendError
from faust.types.transports import ProducerT

from headrace.streams.ports import Log

RETRY_S = 0.5


class Outgoing(NamedTuple):
    """One record; `value` None is a tombstone, `partition` None lets the partitioner choose by the key."""

    topic: str
    partition: int | None
    key: bytes
    value: bytes | None


async def deliver(producer: ProducerT, records: Sequence[Outgoing], log: Log) -> None:
    """Send records in order and return once each of them is at the broker. Tries for ever, and says so."""
    waiting = list(records)
    while waiting:
        sent = [await _send(producer, record) for record in waiting]
        outcomes: list[object] = await asyncio.gather(*sent, return_exceptions=True)
        failed = [(record, o) for record, o in zip(waiting, outcomes, strict=True) if isinstance(o, Exception)]
        waiting = [record for record, _ in failed]
        if failed:
            log.warning("records not delivered, sending again", records=len(failed), error=repr(failed[0][1]))
            await asyncio.sleep(RETRY_S)


async def _send(producer: ProducerT, record: Outgoing) -> Awaitable[object]:
    try:
        return await producer.send(record.topic, record.key, record.value, record.partition, None, None)
    except ProducerSendError as error:
        failed: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        failed.set_exception(error)
        return failed
