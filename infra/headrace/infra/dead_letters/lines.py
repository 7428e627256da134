"""A dead letter as one line: of a table, with a preview of its value, or of JSON, with all its bytes.

    {"refused_ms", "topic", "partition", "offset", "timestamp_ms", "reason", "detail", "stage",
     "key_base64", "value_base64"}                                                      null = the record had none

`base64 -d` gives the original bytes, so that a record can be looked at, mended, and published again.
"""

import base64
from datetime import UTC, datetime

import orjson

from headrace.schemas.dead_letters import DeadLetter

PREVIEW = 32
KEY_PREVIEW = 24
_WIDTHS = (23, 44, 16, KEY_PREVIEW, PREVIEW)


def heading() -> str:
    """Give the table's heading."""
    return _row("refused (UTC)", "topic/partition/offset", "reason", "key", "value", "detail")


def table_line(letter: DeadLetter, refused_ms: int) -> str:
    """Give one line; the detail, which may be long, is last. Nothing in it moves a terminal's cursor."""
    place = f"{letter.topic}/{letter.partition}/{letter.offset}"
    return _row(
        instant(refused_ms),
        place,
        letter.reason.value,
        preview(letter.record_key, KEY_PREVIEW),
        preview(letter.record_value, PREVIEW),
        printable(letter.detail),
    )


def instant(at_ms: int) -> str:
    """Give a time as UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def printable(text: str) -> str:
    """Give a text with a dot for each character that moves a terminal's cursor or is invisible."""
    return "".join(c if c.isprintable() else "." for c in text)


def json_line(letter: DeadLetter, refused_ms: int) -> bytes:
    """Give one line of JSON, with its line feed."""
    return orjson.dumps(
        {
            "refused_ms": refused_ms,
            "topic": letter.topic,
            "partition": letter.partition,
            "offset": letter.offset,
            "timestamp_ms": letter.timestamp_ms,
            "reason": letter.reason.value,
            "detail": letter.detail,
            "stage": letter.stage,
            "key_base64": _base64(letter.record_key),
            "value_base64": _base64(letter.record_value),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def preview(content: bytes | None, length: int) -> str:
    """Give the beginning of some bytes as text, a dot for each that is not printable ASCII; `-` where there are none.

    What is cut ends in its length: `{"engine": "a", "tt... 214 B`.
    """
    if content is None:
        return "-"
    if len(content) <= length:
        return _printable(content)
    rest = f"... {len(content)} B"
    return _printable(content[: length - len(rest)]) + rest


def _printable(content: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in content)


def _row(*cells: str) -> str:
    fixed = [cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)]
    return "  ".join([*fixed, *cells[len(_WIDTHS) :]])


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
