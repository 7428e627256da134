"""Identifiers and keys: `[A-Za-z0-9._:/@-]{1,200}`, joined by `|` where a key has several parts.

The separator is refused inside an identifier, so a key splits in exactly one way.
"""

import re
from typing import NamedTuple

from headrace.schemas.errors import InvalidInputError

SEPARATOR = "|"
COMMIT_KEY = b"!commit"
"""Key of the record that closes a snapshot: `!` is outside the identifier alphabet, so no route can collide with it."""

MAX_IDENTIFIER = 200
"""Characters of an identifier, at most."""
_IDENTIFIER = re.compile(rf"[A-Za-z0-9._:/@-]{{1,{MAX_IDENTIFIER}}}")


class RouteKey(NamedTuple):
    """What a weight is for: requests of one class for one model, entering at one cluster."""

    cluster: str
    model: str
    request_class: str

    def encode(self) -> bytes:
        """Give the Kafka key, `cluster|model|class` in UTF-8."""
        return SEPARATOR.join(self).encode()

    def __str__(self) -> str:
        return SEPARATOR.join(self)


def is_identifier(value: str) -> bool:
    """Say whether `value` may name an engine, cluster, model, class, site or profile."""
    return _IDENTIFIER.fullmatch(value) is not None


def identifier_problem(name: str, value: str) -> str | None:
    """Give the sentence that says why `value` is no identifier, or None where it is one."""
    if is_identifier(value):
        return None
    return f"{name} is {value[:60]!r}; allowed are 1 to 200 of A-Z a-z 0-9 . _ : / @ -"


def link_key(from_cluster: str, to_site: str) -> bytes:
    """Give the Kafka key of a network probe and its state, `from|to`."""
    return f"{from_cluster}{SEPARATOR}{to_site}".encode()


def parse_route_key(key: bytes) -> RouteKey:
    """Split a route's Kafka key.

    Raises:
        InvalidInputError: the key is not three identifiers joined by `|`.
    """
    parts = key.decode("utf-8", "replace").split(SEPARATOR)
    if len(parts) != 3 or not all(map(is_identifier, parts)):
        raise InvalidInputError("route key", (f"key is {key[:80]!r}; expected cluster|model|class",))
    return RouteKey(*parts)
