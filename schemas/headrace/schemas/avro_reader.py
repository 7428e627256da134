"""Avro bodies straight to records: one function per record, made from its schema and its dataclass.

    schema + record type  ->  def read(b, i): ...  ->  (record, where it ends)

Fastavro reads a body to dicts and lists, from which records are then built: twice the time, for the hottest path there
is (every signal, every state). Here the reader of each record is Python source that is made and compiled once, as
`dataclasses` makes an `__init__`. It knows what our own schemas hold (records, arrays, enums, null or one type,
primitives) and reads bodies that were written with today's schema; what another release wrote goes through fastavro,
which resolves schemas. A test holds both to the same results, on hostile bytes too.

Source: Avro specification, "Binary Encoding".
"""

import dataclasses
import struct
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from headrace.schemas.avro_schemas import AvroSchema, schema
from headrace.schemas.avro_source import RecordSource
from headrace.schemas.plain import item_type

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Gives the record whose body begins at an index, and the index behind it. Raises nearly anything on hostile bytes."""

_HALF: Final = bytes(n >> 1 if n < 128 and n % 2 == 0 else 255 for n in range(256))
"""Zigzag, one byte a number: even bytes below 128 are n >> 1; 255 stands for all that is not a small count."""


@cache
def reader_of(record_type: type) -> Reader:
    """Give the reader of a record type's bodies, written with the schema that this build ships."""
    made = _Source()
    name = made.record(schema(record_type.__name__), record_type)
    built = made.built(
        name,
        _long=_long,
        _small=_small,
        _end=_end,
        _double=struct.Struct("<d").unpack_from,
        _float=struct.Struct("<f").unpack_from,
    )
    return cast("Reader", built)


class _Source(RecordSource):
    """The source of a record's reader and of those inside it."""

    def __init__(self) -> None:
        super().__init__()
        self._variables = 0

    def record(self, avro: AvroSchema, record_type: type) -> str:
        """Make a record's function and give its name."""
        name = f"_read_{record_type.__name__}"
        if self._begun(name, avro):
            return name
        hints = typing.get_type_hints(record_type)
        body, variables = [f"def {name}(b, i):", " z = len(b)"], dict[str, str]()
        for field in avro["fields"]:
            variables[field["name"]] = self._variable()
            body += self._value(field["type"], hints.get(field["name"]), variables[field["name"]], " ")
        own = [variables[field.name] for field in dataclasses.fields(record_type) if field.name in variables]
        made = self._name(record_type)
        self._lines += [*body, f" return {made}({', '.join(own)}), i"]
        return name

    def _value(self, avro: Any, hint: Any, to: str, pad: str) -> list[str]:  # noqa: ANN401 - a schema or a hint is of any type
        if isinstance(avro, list):
            return self._union(cast("list[Any]", avro), hint, to, pad)
        avro = self._named.get(avro, avro) if isinstance(avro, str) else avro
        kind: str = avro if isinstance(avro, str) else avro["type"]
        if kind in ("int", "long"):
            return self._number(to, pad)
        if kind in ("double", "float"):
            return [f"{pad}{to} = _{kind}(b, i)[0]; i += {8 if kind == 'double' else 4}"]
        if kind == "boolean":
            return [f"{pad}{to} = b[i] != 0; i += 1"]
        if kind in ("string", "bytes"):
            size, text = self._variable(), ".decode()" if kind == "string" else ""
            return [
                *self._number(size, pad),
                f"{pad}{size} = _end(i, {size}, z)",
                f"{pad}{to} = b[i:{size}]{text}; i = {size}",
            ]
        if kind == "enum":
            return self._enum(cast("AvroSchema", avro), hint, to, pad)
        if kind == "array":
            return self._array(cast("AvroSchema", avro)["items"], hint, to, pad)
        inner, _ = item_type(hint)
        return [f"{pad}{to}, i = {self.record(cast('AvroSchema', avro), inner)}(b, i)"]

    def _number(self, to: str, pad: str) -> list[str]:
        return [
            f"{pad}{to} = b[i]; i += 1",
            f"{pad}if {to} > 127: {to}, i = _long(b, i, {to})",
            f"{pad}{to} = {to} >> 1 ^ -({to} & 1)",
        ]

    def _union(self, avro: list[Any], hint: Any, to: str, pad: str) -> list[str]:  # noqa: ANN401 - as above
        null = avro.index("null")
        which = self._variable()
        return [
            *self._number(which, pad),
            f"{pad}if {which} == {null}: {to} = None",
            f"{pad}elif {which} == {1 - null}:",
            *self._value(avro[1 - null], hint, to, pad + " "),
            f"{pad}else: raise IndexError('branch of a union')",
        ]

    def _enum(self, avro: AvroSchema, hint: Any, to: str, pad: str) -> list[str]:  # noqa: ANN401 - as above
        self._named[avro["name"]] = avro
        inner, _ = item_type(hint)
        words = self._name([inner(symbol) for symbol in avro["symbols"]])
        return [*self._number(to, pad), f"{pad}{to} = {words}[_end(0, {to}, {len(avro['symbols'])})]"]

    def _array(self, items: Any, hint: Any, to: str, pad: str) -> list[str]:  # noqa: ANN401 - as above
        count, item, more = self._variable(), self._variable(), pad + "  "
        inner, _ = item_type(hint)
        if items in ("int", "long"):
            read = [f"{pad} i = _small(b, i, {count}, {to}.extend)"]
        else:
            read = [
                f"{pad} for _ in range({count}):",
                *self._value(items, inner, item, more),
                f"{more}{to}.append({item})",
            ]
        return [
            f"{pad}{to} = []",
            f"{pad}while True:",
            *self._number(count, pad + " "),
            f"{pad} if not {count}: break",
            f"{pad} if {count} < 0:",
            f"{more}{count} = -{count}",
            *self._number(item, more),
            f"{pad} _end(i, {count}, z)",
            *read,
            f"{pad}{to} = tuple({to})",
        ]

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"


def _long(b: bytes, i: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte says that there is one."""
    value, shift = first & 127, 7
    while True:
        byte = b[i]
        i += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                raise OverflowError("a number of more than 64 bits")
            return value, i
        shift += 7
        if shift > 63:
            raise OverflowError("a number of more than 64 bits")


def _small(b: bytes, i: int, count: int, extend: Callable[[Any], object]) -> int:
    """Read `count` numbers and give the index behind them: at once where each is a small count in one byte."""
    halves = b[i : i + count].translate(_HALF)
    if 255 not in halves:
        extend(halves)
        return i + count
    values: list[int] = []
    for _ in range(count):
        value = b[i]
        i += 1
        if value > 127:
            value, i = _long(b, i, value)
        values.append(value >> 1 ^ -(value & 1))
    extend(values)
    return i


def _end(i: int, size: int, limit: int) -> int:
    """Give i + size.

    Raises:
        EOFError: `size` is negative, or what it spans is not within the limit.
    """
    end = i + size
    if size < 0 or end > limit:
        raise EOFError(f"{size} from {i} on; there are {limit}")
    return end
