"""Dead letters to Kafka, many in one request: a refusal must cost less than a fold, however many come at once.

Record by record a flood of them is a round trip each on the embedded broker, whose producer may not gather records (a
recovery would miss the end of a changelog); the worker falls behind, and what it has of healthy engines becomes stale.
Nobody recovers from dead letters, so they go in batches of their own making everywhere. Each is confirmed by the broker
before `deliver` returns; a broker that is away is waited for.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]  # aiokafka ships no types
from aiokafka.producer.message_accumulator import BatchBuilder  # type: ignore[import-untyped]  # as above
from faust.types import AppT

from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.log import Log
from headrace.streams import delivery
from headrace.streams.core.partitioner import partition_of

BATCH_BYTES = 512 * 1024
"""Below the limit of a broker that was left as it is, which holds for batches: 1 MiB. One letter may be larger."""
_UNCOMPRESSED = 0


class KafkaLetters:
    """Writes to the dead-letter topic through the connections of Faust's producer."""

    def __init__(self, app: AppT, topic: str, log: Log) -> None:
        self._app = app
        self._topic = topic
        self._log = log

    async def deliver(self, letters: Sequence[DeadLetter]) -> None:
        """Write letters, each by its key, and return once all are at the broker, or refused for their size.

        A batch that is too large for its topic is written letter by letter. Tries for ever, and says so.
        """
        waiting = [(letter.key, encode(letter)) for letter in letters]
        at = singly_until = 0
        while at < len(waiting):
            batch, count = _filled(waiting[at : at + 1] if at < singly_until else waiting[at:])
            error = await self._send(batch, waiting[at][0])
            if error is None:
                at += count
            elif not delivery.is_too_large(error):
                self._log.warning("dead letters not delivered, sending again", records=count, error=repr(error))
                await asyncio.sleep(delivery.RETRY_S)
            elif count > 1:
                singly_until = at + count
            else:
                delivery.say_given_up(self._log, self._topic, waiting[at][1])
                at += 1

    async def _send(self, batch: object, key: bytes) -> Exception | None:
        try:
            client: Any = cast("Any", self._app.producer)._ensure_producer()  # noqa: SLF001 - Faust sends record by record
            partitions = await client.partitions_for(self._topic)
            await (await client.send_batch(batch, self._topic, partition=partition_of(key, len(partitions))))
        except KafkaError as error:
            return cast("Exception", error)
        return None


def _filled(records: Sequence[tuple[bytes, bytes]]) -> tuple[object, int]:
    """Give a batch of the first records of one key, and how many they are: as many as it holds, at least one."""
    batch: Any = BatchBuilder(BATCH_BYTES, _UNCOMPRESSED)
    count = 0
    for key, value in records:
        if key != records[0][0] or batch.append(timestamp=None, key=key, value=value) is None:
            break
        count += 1
    batch.close()
    return batch, count
