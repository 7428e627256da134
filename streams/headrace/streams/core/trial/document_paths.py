"""Paths of the scalars in documents, as a mapping writes them."""

import re
from collections.abc import Sequence
from typing import Any, cast

from headrace.streams.core.decode.contract import Document


def scalar_paths(documents: Sequence[Document]) -> dict[str, list[Any]]:
    """Give the scalars of the documents by dotted path, two levels deep."""
    found: dict[str, list[Any]] = {}
    for document in documents:
        for name, value in document.body.items():
            if isinstance(value, dict):
                for inner, each in cast("dict[str, Any]", value).items():
                    if isinstance(each, str | int | float):
                        found.setdefault(f"{name}.{inner}", []).append(each)
            elif isinstance(value, str | int | float):
                found.setdefault(str(name), []).append(value)
    return found


def written(name: str) -> str:
    """Give a dotted path as JMESPath has it: parts that are no plain names are quoted."""
    return ".".join(part if re.fullmatch(r"[A-Za-z_]\w*", part) else f'"{part}"' for part in name.split("."))
