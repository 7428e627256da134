"""Where a session stands on the circle of 64 bits: xxh3 of its key; of a request without one, of the next number.

    point = xxh3_64(key)         no key: xxh3_64(number, seed = xxh3_64(the data plane's name))

Equal keys have equal points in every data plane; requests without a key are spread, and two data planes do not spread
them in step.
"""

from itertools import count
from typing import Final

import xxhash

_hash: Final = xxhash.xxh3_64_intdigest


class SessionPoints:
    """Of one data plane; safe from any thread."""

    def __init__(self, name: str) -> None:
        self._keyless = count()
        self._seed = _hash(name.encode())

    def of(self, key: bytes | str | None) -> int:
        """Give the point of a session; a text is its UTF-8.

        Raises:
            TypeError: neither text nor bytes.
        """
        if not key:
            return _hash(next(self._keyless).to_bytes(8, "little"), self._seed)
        if isinstance(key, str):
            key = key.encode("utf-8", "surrogatepass")
        return _hash(key)
