"""Raw settings against the types that they are for: unknown keys are found, and options with dots are put together.

A tree is what a TOML file gives: tables, lists and values. Where a setting is a mapping of strings (Kafka's options,
topic names), inner tables are joined by dots: `security.protocol = "SSL"` is a table to TOML and one name to Kafka.
"""

import dataclasses
import difflib
import inspect
import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Tree = dict[str, Any]
Path = tuple[str, ...]


def fitted(kind: Any, tree: Any, at: Path, problems: list[str]) -> Any:  # noqa: ANN401 - types and values of any setting
    """Give the tree in the shape that `kind` wants; unknown keys are left out and named in `problems`.

    Values are not judged here: a value of the wrong type is left for the validation of its section.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return fitted(arguments[0], tree, at, problems)
    if dataclasses.is_dataclass(kind) and isinstance(tree, Mapping):
        return _fitted_fields(cast("type", kind), cast("Mapping[str, Any]", tree), at, problems)
    if inspect.isclass(origin) and issubclass(origin, Mapping) and isinstance(tree, Mapping):
        named = cast("Mapping[str, Any]", tree)
        if arguments[1] is str:
            return dict(_joined(named))
        return {name: fitted(arguments[1], value, (*at, name), problems) for name, value in named.items()}
    if origin is tuple and isinstance(tree, list):
        items = cast("list[Any]", tree)
        return [fitted(arguments[0], item, (*at, str(i)), problems) for i, item in enumerate(items)]
    return tree


def _fitted_fields(kind: type, tree: Mapping[str, Any], at: Path, problems: list[str]) -> Tree:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [field.name for field in dataclasses.fields(kind)]
    unknown = [name for name in tree if name not in fields]
    problems += [f"{dotted((*at, name))}: no such setting; {nearest(name, fields)}" for name in unknown]
    return {name: fitted(hints[name], tree[name], (*at, name), problems) for name in fields if name in tree}


def _joined(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _joined(cast("Mapping[str, Any]", value), f"{prefix}{name}.")
        else:
            # TOML has true and 6000, librdkafka has names and values in text.
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else _text(value)


def _text(value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    return str(value) if isinstance(value, int | float) else value


def merged(below: Tree, above: Tree) -> Tree:
    """Give `below` overlaid by `above`, tables merged, everything else replaced. Neither is changed."""
    out = dict(below)
    for name, value in above.items():
        old = out.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            out[name] = merged(cast("Tree", old), cast("Tree", value))
        else:
            out[name] = value
    return out


def leaves(tree: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 - a tree or a value
    """Give every value with its path; list items by their index, an empty list as a value."""
    if isinstance(tree, Mapping):
        for name, value in cast("Mapping[str, Any]", tree).items():
            yield from leaves(value, (*at, name))
    elif isinstance(tree, list | tuple) and tree:
        for i, value in enumerate(cast("Sequence[Any]", tree)):
            yield from leaves(value, (*at, str(i)))
    else:
        yield at, tree


def not_finite(tree: Any) -> Iterator[tuple[Path, float]]:  # noqa: ANN401 - a tree or a value
    """Give every number that is infinite or not a number, with its path."""
    for path, value in leaves(tree):
        if isinstance(value, float) and not math.isfinite(value):
            yield path, value


def nearest(name: str, known: Sequence[str]) -> str:
    """Say which known name was probably meant, or which there are."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"the nearest is {close[0]}" if close else f"there are {', '.join(sorted(known))}"


def dotted(path: Path) -> str:
    """Give a path as it is written in TOML: parts that are no bare keys are quoted."""
    return ".".join(part if is_bare_key(part) else f'"{part}"' for part in path)


def is_bare_key(part: str) -> bool:
    """Say whether TOML needs no quotes around this key."""
    return bool(part) and part.isascii() and all(c.isalnum() or c in "-_" for c in part)
