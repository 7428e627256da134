"""Records straight to Avro bodies: one function per record, made from its schema and its dataclass.

    schema + record type  ->  def write(r): return b"".join((...))  ->  the body

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
_LONG_END: Final = 1 << 63


@cache
def writer_of(record_type: type) -> Writer:
    """Give the writer of a record type's bodies, by the schema that this build ships."""
    made = _Source()
    name = made.record(schema(record_type.__name__), record_type)
    built = made.built(
        name,
        _string=_Strings().of,
        _bytes=_bytes,
        _long=long_bytes,
        _array=_array,
        _double=struct.Struct("<d").pack,
        _float=struct.Struct("<f").pack,
    )
    return cast("Writer", built)


class _Source(RecordSource):
    """The source of a record's writer and of those inside it."""

    def record(self, avro: AvroSchema, record_type: type) -> str:
        """Make a record's function and give its name."""
        name = f"_write_{record_type.__name__}"
        if self._begun(name, avro):
            return name
        hints = typing.get_type_hints(record_type)
        parts = [self._value(field["type"], hints.get(field["name"]), f"r.{field['name']}") for field in avro["fields"]]
        self._lines += [f"def {name}(r):", f" return b''.join(({', '.join(parts)},))"]
        return name

    def _value(self, avro: Any, hint: Any, of: str) -> str:  # noqa: ANN401 - a schema or a hint is of any type
        if isinstance(avro, list):
            branches = cast("list[Any]", avro)
            null = branches.index("null")
            inside = self._value(branches[1 - null], hint, "v")
            return f"({_ONE[2 * null]!r} if (v := {of}) is None else {_ONE[2 * (1 - null)]!r} + {inside})"
        avro = self._named.get(avro, avro) if isinstance(avro, str) else avro
        kind: str = avro if isinstance(avro, str) else avro["type"]
        if kind in ("int", "long"):
            return f"_long({of})"
        if kind in ("double", "float", "string", "bytes"):
            return f"_{kind}({of})"
        if kind == "boolean":
            return f"(b'\\x01' if {of} else b'\\x00')"
        inner, _ = item_type(hint)
        if kind == "enum":
            words = cast("AvroSchema", avro)
            self._named[words["name"]] = words
            return f"{self._name({symbol: long_bytes(i) for i, symbol in enumerate(words['symbols'])})}[{of}]"
        if kind == "array":
            return f"_array({self._items(cast('AvroSchema', avro)['items'], inner)}, {of})"
        return f"{self.record(cast('AvroSchema', avro), inner)}({of})"

    def _items(self, items: Any, inner: Any) -> str:  # noqa: ANN401 - as above
        written = self._value(items, inner, "x")
        name, _, rest = written.partition("(")
        # A writer that takes the item as it is needs no function around it.
        return name if rest == "x)" else f"lambda x: {written}"


class _Strings:
    """Strings with their lengths before them. Mutable for speed; what it gives depends on nothing but the string."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def of(self, value: str) -> bytes:
        found = self._known.get(value)
        if found is not None:
            return found
        text = value.encode()
        written = long_bytes(len(text)) + text
        if len(value) <= SHORT:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[value] = written
        return written


def _bytes(value: bytes) -> bytes:
    return long_bytes(len(value)) + value


def _array(write: Writer, items: tuple[Any, ...]) -> bytes:
    if not items:
        return b"\x00"
    return b"%b%b\x00" % (long_bytes(len(items)), b"".join([write(item) for item in items]))


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
        return bytes((left & 127 | 128, left >> 7 & 127 | 128, left >> 14))
    if not -_LONG_END <= value < _LONG_END:
        raise OverflowError(f"{value} needs more than 64 bits")
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left)
    return bytes(out)
