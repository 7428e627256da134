"""Telegraf's JSON serializer: {"name", "tags", "fields", "timestamp"}, or {"metrics": [...]} where it batches.

The time is in seconds by default; other units that Telegraf can be set to are told by magnitude.
"""

import orjson

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Gathering, Refusal
from headrace.streams.core.decode.telegraf import add_metric
from headrace.streams.core.decode.values import instant, json_labels, mapping, number, sequence, text


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a message."""
    try:
        document = mapping(orjson.loads(record.value or b""), "the message")
    except orjson.JSONDecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no JSON: {error}") from None
    found = Gathering(options)
    metrics = sequence(document["metrics"], "metrics") if "metrics" in document else [document]
    for metric in metrics:
        try:
            _metric(metric, record.timestamp_ms, options, found)
        except Refusal as refusal:
            found.reject(refusal.rejected.reason, refusal.rejected.detail)
        found.bound()
    return found.decoded()


def _metric(metric: object, otherwise_ms: int, options: DecodeOptions, found: Gathering) -> None:
    document = mapping(metric, "the metric")
    stamp: object = document.get("timestamp")
    time_ms = otherwise_ms if stamp is None else instant(number(stamp, "timestamp"), "timestamp")
    name = text(document.get("name"), "name")
    tags = json_labels(document.get("tags", {}), "tags")
    add_metric(name, tags, mapping(document.get("fields"), "fields"), time_ms, options, found)
