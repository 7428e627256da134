"""Any JSON: an object, an array of objects, or one object a line; a mapping's JMESPath says what is in them."""

import orjson

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Document, Gathering, Refusal
from headrace.streams.core.decode.values import as_list, mapping


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the objects of a message; each has the record's time until a mapping finds a better one."""
    payload = record.value or b""
    found = Gathering(options)
    try:
        documents: list[object] = as_list(orjson.loads(payload))
    except orjson.JSONDecodeError as error:
        documents = _lines(payload, options, found, error)
    for index, document in enumerate(documents):
        try:
            found.documents.append(Document(mapping(document, f"entry {index}"), record.timestamp_ms, index))
        except Refusal as refusal:
            found.reject(refusal.rejected.reason, refusal.rejected.detail)
        found.bound()
    return found.decoded()


def _lines(payload: bytes, options: DecodeOptions, found: Gathering, error: Exception) -> list[object]:
    lines = [line for line in payload.split(b"\n") if line.strip()]
    if not 1 < len(lines) <= options.max_points:
        raise Refusal(RejectReason.MALFORMED, f"no JSON: {error}")
    documents: list[object] = []
    for line in lines:
        try:
            documents.append(orjson.loads(line))
        except orjson.JSONDecodeError as line_error:
            found.reject(RejectReason.MALFORMED, f"no JSON: {line_error}")
    return documents
