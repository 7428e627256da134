"""CloudEvents 1.0 over Kafka, unwrapped: what is left is the record that its producer would have sent without it.

    binary      attributes in headers `ce_*`, the value is the payload           passes through
    structured  content-type application/cloudevents+json; `data` or `data_base64` is the payload, attributes
                become headers `ce_*`, as in binary mode

(ce_source, ce_id) is the duplicate key. Source: CloudEvents, Kafka protocol binding 1.0.2.
"""

import base64
import binascii

import orjson

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Refusal
from headrace.streams.core.decode.values import mapping

_STRUCTURED = "application/cloudevents"
_MAX_ATTRIBUTES = 64


def unwrap(record: RawRecord) -> RawRecord:
    """Give the record with the payload as its value; a record that is no structured event is given back as it is.

    Raises:
        Refusal: the envelope is none, is a batch, or has no data.
    """
    content_type = _content_type(record)
    if not content_type.startswith(_STRUCTURED):
        return record
    if content_type.startswith("application/cloudevents-batch"):
        raise Refusal(RejectReason.MALFORMED, "a batch of CloudEvents; the Kafka binding has single events only")
    try:
        envelope = mapping(orjson.loads(record.value or b""), "the CloudEvents envelope")
    except orjson.JSONDecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no JSON in a CloudEvents envelope: {error}") from None
    headers = [
        (f"ce_{name}", str(value).encode("utf-8", "replace"))
        for name, value in list(envelope.items())[:_MAX_ATTRIBUTES]
        if name not in ("data", "data_base64") and isinstance(value, str | int | bool)
    ]
    kept = tuple((name, value) for name, value in record.headers if name.lower() != "content-type")
    return RawRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=_payload(envelope.get("data"), envelope.get("data_base64")),
        headers=(*kept, *headers),
    )


def _payload(data: object, data_base64: object) -> bytes:
    if isinstance(data_base64, str):
        try:
            return base64.b64decode(data_base64, validate=True)
        except (binascii.Error, ValueError):
            raise Refusal(RejectReason.MALFORMED, "data_base64 of a CloudEvents envelope is no base64") from None
    if data is None:
        raise Refusal(RejectReason.MALFORMED, "a CloudEvents envelope without data")
    return data.encode() if isinstance(data, str) else orjson.dumps(data)


def _content_type(record: RawRecord) -> str:
    for name, value in record.headers:
        if name.lower() == "content-type":
            return value[:80].decode("latin-1").strip().lower()
    return ""
