"""prometheus-kafka-adapter's JSON: one sample a message, keyless; the value is a text, the time cut to whole seconds.

The samples of a histogram are put together by `decode.families`. "NaN" is no recorded value; an infinite bucket bound
is fine, an infinite value is not.
"""

from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import (
    Decoded,
    DecodeOptions,
    Gathering,
    Kind,
    Point,
    Temporality,
)
from headrace.streams.core.decode.families import SUFFIXES
from headrace.streams.core.decode.values import (
    as_list,
    instant,
    json_labels,
    json_value,
    labels,
    mapping,
    number,
    rfc3339,
    scalar,
    text,
)


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the sample of a message; a message that is an array of samples gives them all."""
    found = Gathering(options)
    found.read_each(as_list(json_value(record.value)), _sample, record.timestamp_ms, options)
    return found.decoded()


def _sample(sample: object, otherwise_ms: int, options: DecodeOptions, found: Gathering) -> None:
    document = mapping(sample, "the sample")
    pairs = json_labels(document.get("labels", {}), "labels")
    name = text(document.get("name", pairs.get("__name__")), "name")
    pairs.pop("__name__", None)
    if not is_wanted(name, options.wanted):
        found.skipped[name] = found.skipped.get(name, 0) + 1
        return
    stamp: object = document.get("timestamp")
    if stamp is None:
        time_ms = otherwise_ms
    elif isinstance(stamp, str) and not stamp.replace(".", "", 1).isdecimal():
        time_ms = rfc3339(stamp, "timestamp")
    else:
        time_ms = instant(number(stamp, "timestamp"), "timestamp")
    value = scalar(document.get("value"), "value")
    known = labels(pairs.items())
    index = len(found.points)
    found.points.append(Point(name, known, Kind.UNTYPED, Temporality.INSTANT, time_ms, None, value, None, "", index))


def is_wanted(name: str, wanted: frozenset[str] | None) -> bool:
    """Say whether a sample is wanted by its own name, or as a part of a wanted histogram."""
    if wanted is None or name in wanted:
        return True
    return any(name.endswith(suffix) and name[: -len(suffix)] in wanted for suffix in SUFFIXES)
