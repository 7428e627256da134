"""Strict YAML -> dicts, lists, texts, numbers, booleans and null, or a sentence for what is wrong.

Refused: a key that stands twice, anchors and aliases, tags, more than MAX_BYTES, nesting beyond MAX_DEPTH. Only `true`,
`false` and `null` are words of their own: `on`, `no` and `12:30` are texts, as whoever wrote them meant.
"""

import re
from typing import Any, Final

import yaml

from headrace.schemas.errors import InvalidInputError

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 20

Loaded = Any
"""What YAML may hold: dicts, lists, texts, numbers, booleans, None."""

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None, "~": None, "": None}


def load(document: str, name: str) -> Loaded:
    """Read a document; an empty one is null.

    Raises:
        InvalidInputError: it is no strict YAML; the message has line and column.
    """
    if len(document) > MAX_BYTES:
        raise InvalidInputError(name, (f"has {len(document)} characters; at most {MAX_BYTES}",))
    problems: list[str] = []
    try:
        _refuse_sharing(document, problems)
        node = None if problems else yaml.compose(document, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidInputError(name, (f"no YAML: {_one_line(error)}",)) from None
    found = None if node is None else _value(node, 0, problems)
    if problems:
        raise InvalidInputError(name, tuple(problems))
    return found


def _refuse_sharing(document: str, problems: list[str]) -> None:
    depth = 0
    for event in yaml.parse(document, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            problems.append(f"{_at(event)}: nested deeper than {MAX_DEPTH}")
            return
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            problems.append(f"{_at(event)}: anchors and aliases are not read; write the value out")
            return
        tag = getattr(event, "tag", None)
        if tag is not None:
            problems.append(f"{_at(event)}: tags are not read: {tag}")
            return


def _value(node: yaml.Node, depth: int, problems: list[str]) -> Loaded:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                problems.append(f"{_at(key_node)}: a key must be a text")
                continue
            key = str(key_node.value)
            if key in found:
                problems.append(f"{_at(key_node)}: the key {key!r} stands twice")
            found[key] = _value(value_node, depth + 1, problems)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, depth + 1, problems) for item in node.value]
    return _scalar(node)


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text = str(node.value)
    if getattr(node, "style", None) is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _at(where: yaml.Node | yaml.Event) -> str:
    mark = where.start_mark
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
