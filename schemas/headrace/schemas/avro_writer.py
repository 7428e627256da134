"""Records straight to Avro bodies: one function per record, made from its schema and its dataclass.

    schema + record type  ->  def write(r): return b"".join((...))              ->  the body
    array of records      ->  for x in items: parts += (...)                      ->  its block

The other half of `avro_reader`, for the same reason: by way of dicts a body takes three times as long, and a snapshot
of a large fleet is encoded whole whenever it is sealed, checked and sent. It writes byte for byte what fastavro would
write (one block per array), for what our own schemas hold: records, arrays, enums, null or one type, primitives.

Short strings are remembered with their lengths, `REMEMBERED` at most: the same engines and addresses come again in
every route. Nothing depends on it but the time.

Source: Avro specification, "Binary Encoding".
"""

import struct
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from headrace.schemas.avro_schemas import AvroSchema, schema
from headrace.schemas.avro_source import RecordSource
from headrace.schemas.plain import item_type

Writer = Callable[[Any], bytes]
"""Gives the body of a record. Raises nearly anything where a field holds what its schema does not allow."""

REMEMBERED: Final = 16_384
"""Strings of one record type. A large fleet has fewer; of names that never come again this many cost some 5 MB."""
SHORT: Final = 64
"""Characters up to which a string is worth remembering: names are, sentences are not."""
_ONE: Final = tuple(bytes((n,)) for n in range(128))
_LOW: Final = tuple(bytes((n & 127 | 128, n >> 7 | 128)) for n in range(1 << 14))
"""The lowest fourteen bits of a number that has more: a weight has up to twenty-one."""
_LONG_END: Final = 1 << 63


@cache
def writer_of(record_type: type) -> Writer:
    """Give the writer of a record type's bodies, by the schema that this build ships."""
    made = _Source()
    name = made.record(schema(record_type.__name__), record_type)
    built = made.built(
        name,
        _string=_Strings(),
        _null_first=_Strings(before=_ONE[2], null=_ONE[0]),
        _null_last=_Strings(before=_ONE[0], null=_ONE[2]),
        _bytes=_bytes,
        _long=long_bytes,
        _double=struct.Struct("<d").pack,
        _float=struct.Struct("<f").pack,
    )
    return cast("Writer", built)


class _Source(RecordSource):
    """The source of a record's writer and of those inside it."""

    def record(self, avro: AvroSchema, record_type: type) -> str:
        """Make a record's function and give its name."""
        name = f"_write_{record_type.__name__}"
        if not self._begun(name, avro):
            self._lines += [f"def {name}(r):", f" return b''.join(({self._fields(avro, record_type, 'r')}))"]
        return name

    def _fields(self, avro: AvroSchema, record_type: type, of: str) -> str:
        """Give what a record's fields are written as, each with a comma behind it."""
        hints = typing.get_type_hints(record_type)
        found = [self._value(f["type"], hints.get(f["name"]), f"{of}.{f['name']}") for f in avro["fields"]]
        return "".join(f"{value}, " for value in found)

    def _value(self, avro: Any, hint: Any, of: str) -> str:  # noqa: ANN401 - a schema or a hint is of any type
        if isinstance(avro, list):
            return self._nullable(cast("list[Any]", avro), hint, of)
        avro = self._named.get(avro, avro) if isinstance(avro, str) else avro
        kind: str = avro if isinstance(avro, str) else avro["type"]
        if kind == "string":
            return f"_string[{of}]"
        if kind in ("int", "long"):
            return f"_long({of})"
        if kind in ("double", "float", "bytes"):
            return f"_{kind}({of})"
        if kind == "boolean":
            return f"(b'\\x01' if {of} else b'\\x00')"
        inner, _ = item_type(hint)
        if kind == "enum":
            words = cast("AvroSchema", avro)
            self._named[words["name"]] = words
            return f"{self._name({symbol: long_bytes(i) for i, symbol in enumerate(words['symbols'])})}[{of}]"
        if kind == "array":
            return f"{self._array(cast('AvroSchema', avro)['items'], inner)}({of})"
        return f"{self.record(cast('AvroSchema', avro), inner)}({of})"

    def _nullable(self, branches: list[Any], hint: Any, of: str) -> str:  # noqa: ANN401 - as above
        null = branches.index("null")
        if branches[1 - null] == "string":
            return f"{('_null_first', '_null_last')[null]}[{of}]"
        inside = self._value(branches[1 - null], hint, "v")
        return f"({_ONE[2 * null]!r} if (v := {of}) is None else {_ONE[2 * (1 - null)]!r} + {inside})"

    def _array(self, items: Any, inner: Any) -> str:  # noqa: ANN401 - as above
        """Make the function of an array; a function for each item would cost more than most items do."""
        avro = self._named.get(items, items) if isinstance(items, str) else items
        if isinstance(avro, dict) and avro["type"] == "record":
            self._named[avro["name"]] = avro
            each = self._fields(cast("AvroSchema", avro), inner, "x")
        else:
            each = f"{self._value(items, inner, 'x')},"
        name = f"_array{len(self._made)}"
        self._made.add(name)
        self._lines += [
            f"def {name}(items):",
            " if not items:",
            "  return b'\\x00'",
            " parts = [_long(len(items))]",
            " for x in items:",
            f"  parts += ({each})",
            " parts.append(b'\\x00')",
            " return b''.join(parts)",
        ]
        return name


class _Strings(dict[str | None, bytes]):
    """Strings with their lengths before them. Mutable for speed; what it gives depends on nothing but the string.

    Args:
        before: what stands before each string: which branch of a union it is.
        null: what is written for None; without it there is none.
    """

    def __init__(self, before: bytes = b"", null: bytes | None = None) -> None:
        super().__init__()
        self._before, self._null = before, null

    def __missing__(self, value: str | None) -> bytes:
        if value is None and self._null is not None:
            return self._null
        text = cast("str", value).encode()
        written = self._before + long_bytes(len(text)) + text
        if len(text) <= SHORT:
            if len(self) >= REMEMBERED:
                self.clear()
            self[value] = written
        return written


def _bytes(value: bytes) -> bytes:
    return long_bytes(len(value)) + value


def long_bytes(value: int) -> bytes:
    """Write a number in zigzag, seven bits a byte, the lowest first.

    Raises:
        OverflowError: it needs more than 64 bits.
    """
    left = value << 1 if value >= 0 else ~(value << 1)
    if left < 128:
        return _ONE[left]
    if left < 1 << 14:
        return bytes((left & 127 | 128, left >> 7))
    if left < 1 << 21:
        return _LOW[left & 16383] + _ONE[left >> 14]
    if not -_LONG_END <= value < _LONG_END:
        raise OverflowError(f"{value} needs more than 64 bits")
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left)
    return bytes(out)
