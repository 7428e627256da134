"""Records to dicts, lists and primitives and back: what `--json` prints and snapshot files hold.

The converters are compiled once per record type from its type hints, so a record's type is said in one place.
"""

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, cast

R = TypeVar("R")

_writers: dict[type, Callable[[Any], dict[str, Any]]] = {}
_readers: dict[type, Callable[[Mapping[str, Any]], Any]] = {}


def to_plain(record: object) -> dict[str, Any]:
    """Give a record, nested ones included, as dicts, lists and primitives."""
    return _writer(type(record))(record)


def from_plain(record_type: type[R], plain: Mapping[str, Any]) -> R:
    """Build a record from what `to_plain` gave; a field with a default may be absent, as in files of older versions.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or of another kind; the message names it.
    """
    return cast("R", _reader(record_type)(plain))


def item_type(hint: object) -> tuple[Any, bool]:
    """Split `X | None` and `tuple[X, ...]` into the type inside and whether it is a sequence."""
    if isinstance(hint, UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return hint, False


def _writer(record_type: type) -> Callable[[Any], dict[str, Any]]:
    if record_type in _writers:
        return _writers[record_type]
    converts: list[tuple[str, Callable[[Any], Any]]] = []
    hints = typing.get_type_hints(record_type)
    for name, hint in hints.items():
        inner, many = item_type(hint)
        convert: Callable[[Any], Any] | None = list if many else None
        if dataclasses.is_dataclass(inner):
            nested = _writer(cast("type", inner))
            convert = partial(_list_of, nested) if many else nested
        if convert is not None and isinstance(hint, UnionType):
            convert = partial(_maybe, convert)
        if convert is not None:
            converts.append((name, convert))
    names, found = tuple(hints), attrgetter(*hints)
    values_of: Callable[[Any], tuple[Any, ...]] = found if len(names) > 1 else lambda record: (found(record),)

    def write(record: object) -> dict[str, Any]:
        plain = dict(zip(names, values_of(record), strict=True))
        for name, convert in converts:
            plain[name] = convert(plain[name])
        return plain

    _writers[record_type] = write
    return write


def _reader(record_type: type) -> Callable[[Mapping[str, Any]], Any]:
    if record_type in _readers:
        return _readers[record_type]
    fields: list[tuple[str, Callable[[Any], Any] | None]] = []
    defaults = {f.name: f.default for f in dataclasses.fields(record_type) if f.default is not dataclasses.MISSING}
    for name, hint in typing.get_type_hints(record_type).items():
        inner, many = item_type(hint)
        convert: Callable[[Any], Any] | None = None
        if dataclasses.is_dataclass(inner):
            convert = _reader(cast("type", inner))
        elif isinstance(inner, type) and issubclass(inner, StrEnum):
            convert = inner
        if many:
            fields.append((name, _or_none(hint, tuple if convert is None else partial(_tuple_of, convert))))
        else:
            fields.append((name, None if convert is None else partial(_maybe, convert)))

    def read(plain: Mapping[str, Any]) -> object:
        if defaults and not defaults.keys() <= plain.keys():
            plain = {**defaults, **plain}
        return record_type(*[plain[name] if convert is None else convert(plain[name]) for name, convert in fields])

    _readers[record_type] = read
    return read


def _or_none(hint: object, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let None through where the hint allows it: a list that was not measured is no empty one."""
    return partial(_maybe, convert) if isinstance(hint, UnionType) else convert


def _list_of(convert: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [convert(item) for item in items]


def _tuple_of(convert: Callable[[Any], Any], items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([convert(item) for item in items])


def _maybe(convert: Callable[[Any], Any], item: object) -> object:
    return None if item is None else convert(item)
