"""What a value should be, in words: pydantic's sentences without Python's names, and why a file cannot be read."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

_SHAPES = ("tuple_type", "list_type", "mapping_type", "dict_type", "dataclass_type", "dataclass_exact_type")
_ITEMS: Mapping[Any, str] = {str: "strings", int: "integers", float: "numbers", bool: "booleans"}


def should_be(kind: object, error: Mapping[str, Any]) -> str:
    """Give what pydantic's error detail asks for; `kind` is the type that was validated.

    `Input should be a valid tuple` becomes `it should be a list of strings`.
    """
    if error["type"] in _SHAPES:
        return f"it should be {_shape(_inner(kind, error['loc']))}"
    return str(error["msg"]).replace("Input should", "it should")


def why_unreadable(error: Exception) -> str:
    """Give why a file cannot be read, without its name and without numbers."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    if isinstance(error, UnicodeDecodeError):
        return f"is no UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
    return str(error)


def _inner(kind: object, loc: Sequence[int | str]) -> object:
    """Give the type at a place within a type; None where it cannot be told."""
    kind = _bare(kind)
    for part in loc:
        if dataclasses.is_dataclass(kind):
            kind = _bare(typing.get_type_hints(kind, include_extras=True).get(str(part)))
        elif _is_mapping(kind):
            kind = _bare(typing.get_args(kind)[1])
        elif typing.get_origin(kind) in (tuple, list):
            kind = _bare(typing.get_args(kind)[0])
        else:
            return None
    return kind


def _bare(kind: object) -> object:
    """Take `Annotated` and `| None` off."""
    if typing.get_origin(kind) is typing.Annotated:
        return _bare(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        inner = [each for each in typing.get_args(kind) if each is not type(None)]
        return _bare(inner[0]) if len(inner) == 1 else None
    return kind


def _is_mapping(kind: object) -> bool:
    origin = typing.get_origin(kind)
    return inspect.isclass(origin) and issubclass(origin, Mapping)


def _shape(kind: object) -> str:
    if typing.get_origin(kind) in (tuple, list):
        return f"a list of {_items(typing.get_args(kind)[0])}"
    if _is_mapping(kind):
        return f"a table of {_items(typing.get_args(kind)[1])}"
    return "a table" if dataclasses.is_dataclass(kind) else "a list or a table"


def _items(kind: object) -> str:
    kind = _bare(kind)
    if dataclasses.is_dataclass(kind):
        return "tables"
    return next((words for each, words in _ITEMS.items() if each is kind), "values")
