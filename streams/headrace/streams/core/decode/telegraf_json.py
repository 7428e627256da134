"""Telegraf's JSON serializer: {"name", "tags", "fields", "timestamp"}, or {"metrics": [...]} where it batches.

The time is in seconds by default; other units that Telegraf can be set to are told by magnitude.
"""

from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Gathering
from headrace.streams.core.decode.telegraf import add_metric
from headrace.streams.core.decode.values import instant, json_labels, json_value, mapping, number, sequence, text


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a message."""
    document = mapping(json_value(record.value), "the message")
    found = Gathering(options)
    metrics = sequence(document["metrics"], "metrics") if "metrics" in document else [document]
    found.read_each(metrics, _metric, record.timestamp_ms, options)
    return found.decoded()


def _metric(metric: object, otherwise_ms: int, options: DecodeOptions, found: Gathering) -> None:
    document = mapping(metric, "the metric")
    stamp: object = document.get("timestamp")
    time_ms = otherwise_ms if stamp is None else instant(number(stamp, "timestamp"), "timestamp")
    name = text(document.get("name"), "name")
    tags = json_labels(document.get("tags", {}), "tags")
    add_metric(name, tags, mapping(document.get("fields"), "fields"), time_ms, options, found)
