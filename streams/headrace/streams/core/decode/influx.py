r"""InfluxDB line protocol as Telegraf writes it: `measurement,tag=value field=value time`, one or more lines a message.

Time is in nanoseconds; other precisions are told by magnitude. `\,` `\ ` `\=` are literal in names and tags, `\"` in
texts; integers end in i or u. One bad line is rejected. Source: InfluxDB, "Line protocol".
"""

import re

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Gathering, Refusal
from headrace.streams.core.decode.telegraf import add_metric
from headrace.streams.core.decode.values import instant

_SERIES = re.compile(r"((?:[^ \\]|\\.)++) ")
_PART = re.compile(r"((?:[^,\\]|\\.)++)(?:,|$)")
_TAG = re.compile(r"((?:[^=\\]|\\.)++)=(.++)", re.DOTALL)
_FIELD = re.compile(r'((?:[^=, \\]|\\.)++)=("(?:[^"\\]|\\.)*+"|[^, "]++)(,|$| )')
_INTEGER = re.compile(r"-?[0-9]{1,20}[iu]")
_ESCAPE = re.compile(r"\\([,= \\])")


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the points of a message's lines."""
    try:
        lines = (record.value or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(RejectReason.MALFORMED, f"no UTF-8 text: {error}") from None
    found = Gathering(options)
    told = (line.strip(" \t\r") for line in lines.split("\n"))
    written = (line for line in told if line and not line.startswith("#"))
    found.read_each(written, _line, record.timestamp_ms, options)
    return found.decoded()


def _line(line: str, otherwise_ms: int, options: DecodeOptions, found: Gathering) -> None:
    series = _SERIES.match(line)
    if series is None:
        raise Refusal(RejectReason.MALFORMED, f"no line protocol: {line[:120]!r}")
    measurement, tags = _series(series[1])
    fields, rest = _fields(line, series.end())
    time_ms = otherwise_ms
    if rest:
        if not rest.isascii() or not rest.isdecimal() or len(rest) > 20:
            raise Refusal(RejectReason.MALFORMED, f"time is {rest[:40]!r}; expected nanoseconds since the epoch")
        time_ms = instant(int(rest), "time")
    add_metric(measurement, tags, fields, time_ms, options, found)


def _series(series: str) -> tuple[str, dict[str, str]]:
    if "\\" not in series:
        measurement, *pairs = series.split(",")
        tags = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
    else:
        measurement, *pairs = _PART.findall(series)
        matches = [_TAG.fullmatch(pair) for pair in pairs]
        tags = {_plain(m[1]): _plain(m[2]) for m in matches if m is not None}
    if not measurement or len(tags) != len(pairs) or "" in tags or "" in tags.values():
        raise Refusal(RejectReason.MALFORMED, f"no measurement and tags: {series[:120]!r}")
    return _plain(measurement), tags


def _fields(line: str, at: int) -> tuple[dict[str, object], str]:
    fields: dict[str, object] = {}
    while True:
        match = _FIELD.match(line, at)
        if match is None:
            raise Refusal(RejectReason.MALFORMED, f"no field: {line[at : at + 80]!r}")
        name, value = _plain(match[1]), match[2]
        fields[name] = _value(value)
        at = match.end()
        if match[3] != ",":
            return fields, line[at:].strip()


def _value(spelled: str) -> object:
    if spelled[0] == '"':
        return spelled[1:-1]
    if spelled in ("t", "T", "true", "True", "TRUE"):
        return True
    if spelled in ("f", "F", "false", "False", "FALSE"):
        return False
    if _INTEGER.fullmatch(spelled):
        return int(spelled[:-1])
    try:
        return float(spelled)
    except ValueError:
        raise Refusal(RejectReason.MALFORMED, f"a field is {spelled[:40]!r}; expected a number") from None


def _plain(escaped: str) -> str:
    return _ESCAPE.sub(r"\1", escaped) if "\\" in escaped else escaped
