"""MessagePack: a map is a document; an array is Dynamo's ForwardPassMetrics by position.

Dynamo describes its message as positional, and puts a map on the wire; both are read. Fields that a newer Dynamo puts
after the known ones are left out; a message that ends early lacks them.
"""

from typing import Any, cast

import msgpack  # type: ignore[import-untyped]  # msgpack ships no types

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Document, Gathering, Refusal

_SCHEDULED = (
    "num_prefill_requests",
    "sum_prefill_tokens",
    "var_prefill_length",
    "sum_prefill_kv_tokens",
    "num_decode_requests",
    "sum_decode_kv_tokens",
    "var_decode_kv_tokens",
)
_QUEUED = (
    "num_prefill_requests",
    "sum_prefill_tokens",
    "var_prefill_length",
    "num_decode_requests",
    "sum_decode_kv_tokens",
    "var_decode_kv_tokens",
)
_POSITIONS = (
    "version",
    "worker_id",
    "dp_rank",
    "counter_id",
    "wall_time",
    "scheduled_requests",
    "queued_requests",
)
_NESTED = {"scheduled_requests": _SCHEDULED, "queued_requests": _QUEUED}


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the document of a message."""
    payload = record.value or b""
    try:
        unpacked = cast("object", msgpack.unpackb(payload, raw=False, strict_map_key=True, timestamp=0))
    except (ValueError, msgpack.UnpackException) as error:
        raise Refusal(RejectReason.MALFORMED, f"no MessagePack: {type(error).__name__}: {error}") from None
    found = Gathering(options)
    found.documents.append(Document(_document(unpacked), record.timestamp_ms, 0))
    return found.decoded()


def _document(unpacked: object) -> dict[str, Any]:
    body: dict[str, Any]
    if isinstance(unpacked, dict):
        body = {str(name): value for name, value in cast("dict[Any, Any]", unpacked).items()}
    elif isinstance(unpacked, list) and len(cast("list[Any]", unpacked)) >= len(_POSITIONS):
        body = dict(zip(_POSITIONS, cast("list[Any]", unpacked), strict=False))
    else:
        raise Refusal(
            RejectReason.MALFORMED, f"MessagePack holds {unpacked!r:.60}; expected a map, or {len(_POSITIONS)} fields"
        )
    for name, positions in _NESTED.items():
        nested: object = body.get(name)
        if isinstance(nested, list):
            body[name] = dict(zip(positions, cast("list[Any]", nested), strict=False))
    return body
