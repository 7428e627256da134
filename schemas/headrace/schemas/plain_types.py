"""Whether dicts, lists and primitives are of a record's types, field by field: every problem with its path.

A text is a `str`, an integer an `int` of 64 bits and no `bool`, a number an `int` or `float` that is finite, an enum
one of its words; `| None` also takes null. Avro's writers are laxer (they take the text "NaN" for a number), so what
comes from a file is held to this first. A missing field without a default is a problem too; an unknown one is left
aside, as files of newer versions may have it.
"""

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, cast

_INT64: Final = 1 << 63
_SHOWN: Final = 60


def type_problems(record_type: type, plain: object, at: str) -> tuple[str, ...]:
    """Give what is wrong with the types in `plain`, as `to_plain` would give it, for a record; `at` names it."""
    return tuple(_record(record_type, plain, at))


@cache
def _fields(record_type: type) -> tuple[tuple[str, Any, bool], ...]:
    """Give name, type hint and whether it must be there, of each field."""
    hints = typing.get_type_hints(record_type)
    missing = dataclasses.MISSING
    return tuple(
        (f.name, hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(record_type)
    )


def _record(record_type: type, plain: object, at: str) -> Iterator[str]:
    if not isinstance(plain, Mapping):
        yield _not(at, plain, "an object")
        return
    values = cast("Mapping[str, object]", plain)
    for name, hint, required in _fields(record_type):
        if name in values:
            yield from _value(hint, values[name], f"{at}.{name}")
        elif required:
            yield f"{at}.{name} is missing"


def _value(hint: Any, value: object, at: str) -> Iterator[str]:  # noqa: ANN401 - a type hint may be of any type
    if isinstance(hint, UnionType):
        inner = next(part for part in typing.get_args(hint) if part is not NoneType)
        if value is not None:
            yield from _value(inner, value, at)
    elif typing.get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            for i, item in enumerate(cast("list[object]", value)):
                yield from _value(typing.get_args(hint)[0], item, f"{at}[{i}]")
        else:
            yield _not(at, value, "a list")
    elif dataclasses.is_dataclass(hint):
        yield from _record(cast("type", hint), value, at)
    elif issubclass(hint, StrEnum):
        if not (isinstance(value, str) and value in set(hint)):
            yield _not(at, value, f"one of {', '.join(hint)}")
    else:
        expected, fits = _PRIMITIVES[hint]
        if not fits(value):
            yield _not(at, value, expected)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_number(value: object) -> bool:
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


_PRIMITIVES: Final[Mapping[type, tuple[str, Callable[[object], bool]]]] = {
    str: ("a text", _is_text),
    int: ("an integer of 64 bits", _is_int),
    float: ("a finite number", _is_number),
    bool: ("true or false", _is_bool),
}


def _not(at: str, value: object, expected: str) -> str:
    return f"{at} is {_shown(value)}; {expected}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
