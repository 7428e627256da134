"""The JSON Schema of what a command prints with --json: read off the records' types, as `to_plain` writes them.

Draft 2020-12. A field may be added in a later version, so readers must bear unknown ones (`additionalProperties` is
left open); none is removed or changes its type or unit within a major version. The schemas are in infra/json-schemas.
"""

import dataclasses
import typing
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def json_schema(record_type: type, title: str) -> dict[str, Any]:
    """Give the schema of a record type; nested ones stand under `$defs`."""
    defs: dict[str, Any] = {}
    root = _record(record_type, defs)
    return {"$schema": DRAFT, "title": title, **root, **({"$defs": dict(sorted(defs.items()))} if defs else {})}


def _record(record_type: type, defs: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(record_type)
    names = [field.name for field in dataclasses.fields(record_type)]
    first_line = (record_type.__doc__ or "").strip().split("\n")[0]
    return {
        "type": "object",
        "description": first_line,
        "properties": {name: _type(hints[name], defs) for name in names},
        "required": names,
    }


def _type(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a type hint may be of any type
    if isinstance(hint, UnionType):
        return {"anyOf": [_type(part, defs) for part in typing.get_args(hint)]}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _type(typing.get_args(hint)[0], defs)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [member.value for member in hint]}
    if isinstance(hint, type) and hint not in _PLAIN:
        name: str = hint.__name__
        if name not in defs:
            defs[name] = {}  # so that a record within itself ends here
            defs[name] = _record(hint, defs)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": _PLAIN[hint]}
