"""JSON and TOML that somebody wrote: what cannot be read is a ValueError with the reason, however it cannot be read."""

import json
import tomllib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")
MAX_DEPTH = 100
"""Deeper than any of our documents, and shallow enough for whoever walks through one by recursion."""
TOO_DEEP = f"nested too deeply: more than {MAX_DEPTH} levels"


def read_json(text: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Parse JSON.

    Raises:
        ValueError: it is none, holds a number with thousands of digits, or is nested too deeply.
    """
    return _read(json.loads, text)


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: as `read_json`.
    """
    return _read(tomllib.loads, text)


def _read(parse: Callable[[str], T], text: str) -> T:
    try:
        found = parse(text)
    except RecursionError:
        # Not chained: a thousand frames of a parser tell nobody anything.
        raise ValueError(TOO_DEEP) from None
    level: list[Any] = [found]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _inside(each)]
    if level:
        raise ValueError(TOO_DEEP)
    return found


def _inside(value: Any) -> Iterable[Any]:  # noqa: ANN401 - a part of any document
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()
