"""A signal that would be published, as one line of JSON."""

import orjson

from headrace.schemas.codec import decode, must
from headrace.schemas.plain import to_plain
from headrace.streams.core.canonical.packs import Packed


def json_line(signal: Packed) -> str:
    """Give the record that its bytes hold; an infinite bound is null, as JSON has none."""
    record = must(decode(signal.kind, signal.value))
    return orjson.dumps({"record": signal.kind.__name__, **to_plain(record)}).decode()
