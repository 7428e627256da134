"""digest = sum over routes of XXH3-128(key, NUL, body) mod 2^128.

The same for any order, and updated by one route's change. It tells a reader that it holds exactly the set the writer
meant. It guards against loss and mixing, not against forgery.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import xxhash

_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class Summands:
    """Parts of a sum that are reckoned already, by key: of routes that came into it, and of those that went."""

    came: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    went: Mapping[bytes, int] = field(default_factory=dict[bytes, int])


def summand(key: bytes, body: bytes) -> int:
    """Give one route's part of the sum, from its Kafka key and its bare Avro body."""
    return xxhash.xxh3_128_intdigest(key + b"\x00" + body)


def add(total: int, summand: int) -> int:
    """Add a route's summand to a running digest."""
    return (total + summand) % _MODULUS


def remove(total: int, summand: int) -> int:
    """Take a route's summand out of a running digest."""
    return (total - summand) % _MODULUS


def to_text(total: int) -> str:
    """Give the digest as a commit carries it: 32 hex digits."""
    return f"{total:032x}"
