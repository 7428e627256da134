"""What may be folded: a record becomes a signal, or a rejection with a reason for the dead-letter topic.

Checked in this order: readable, the right record, finite and consistent (`check_signal`), the key is the signal's, the
key lies in its partition, the engine is known. The first four depend on the record alone, the last on the fleet as the
worker knows it at that moment: an engine is announced in `fleet` before its signals count.
"""

import hashlib
from collections.abc import Container

from headrace.schemas.check_signals import Signal, check_signal
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import DeadLetter, Rejected, RejectReason
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals
from headrace.streams.core.partitioner import partition_of

STAGE = "streams"
MAX_LETTER_VALUE_BYTES = 4 * 1024 * 1024
MAX_LETTER_KEY_BYTES = 64 * 1024
MAX_LETTER_DETAIL_CHARS = 16 * 1024
"""A dead letter is below its topic's limit whatever it holds; a compressed signal may be far above its own topic's."""


def admit(
    record: RawRecord,
    expected: type[Signal],
    partitions: int,
    fleet: Container[bytes] | None,
    registry: SchemaSource | None = None,
) -> Signal | Rejected:
    """Give the signal that a record holds, or why it may not be folded.

    Args:
        record: as it lies in the log.
        expected: the signal type of its topic.
        partitions: of its topic.
        fleet: keys of the known engines; None where every engine counts as known (off-line).
        registry: where writer schemas of Confluent framing are found; None where none is configured.
    """
    signal = decode(expected, record.value, record.headers, registry)
    if isinstance(signal, Rejected):
        return signal
    problem = check_signal(signal, record.timestamp_ms)
    if problem is not None:
        return problem
    key = signal.key
    if record.key != key:
        return Rejected(RejectReason.KEY_MISMATCH, f"key is {record.key!r:.220}; the signal's is {key!r}")
    belongs = partition_of(key, partitions)
    if belongs != record.partition:
        detail = f"partition is {record.partition}; murmur2 of the key over {partitions} partitions gives {belongs}"
        return Rejected(RejectReason.WRONG_PARTITION, detail)
    if fleet is not None and isinstance(signal, EngineSignals) and key not in fleet:
        return Rejected(RejectReason.UNKNOWN_ENGINE, f"engine_id is {signal.engine_id!r}; fleet has no such engine")
    return signal


def dead_letter(record: RawRecord, rejected: Rejected) -> DeadLetter:
    """Give the record as it came, with where from and why.

    A key or value that is too long for the dead-letter topic is cut; its length and SHA-256 are in the detail then.
    """
    key, key_cut = _kept("key", record.key, MAX_LETTER_KEY_BYTES)
    value, value_cut = _kept("value", record.value, MAX_LETTER_VALUE_BYTES)
    detail = "; ".join((rejected.detail[:MAX_LETTER_DETAIL_CHARS], *key_cut, *value_cut))
    return DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        record_key=key,
        record_value=value,
        reason=rejected.reason,
        detail=detail,
        stage=STAGE,
    )


def _kept(name: str, found: bytes | None, bound: int) -> tuple[bytes | None, tuple[str, ...]]:
    if found is None or len(found) <= bound:
        return found, ()
    digest = hashlib.sha256(found).hexdigest()
    return found[:bound], (f"{name} is cut to {bound} of {len(found)} bytes; SHA-256 of the whole is {digest}",)
