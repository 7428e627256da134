"""A client's message -> RawRecord: the one place where librdkafka's view of a record is left behind."""

from confluent_kafka import Message

from headrace.schemas.raw import RawRecord


def raw_record(message: Message) -> RawRecord:
    """Give a consumed message as a record. A header without a value becomes one with no bytes.

    Headers of which one has a name that is not UTF-8 cannot be read, and are taken as none: the value stands or falls
    by itself. Contract: `message.error()` is None; a message that carries an error is no record.
    """
    _, timestamp_ms = message.timestamp()
    return RawRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ms=timestamp_ms,
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes], ...]:
    try:
        headers = message.headers()
    except (UnicodeDecodeError, SystemError):  # the client decodes a name in C, and may leave it half done
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    return tuple((name, _bytes(value)) for name, value in pairs)


def _bytes(value: str | bytes | None) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else value
