"""The bytes of a followed level in `panes`, before the panes themselves; little-endian.

    kind u8 | rps f64 | at_ms i64 | number of panes u16 | and by its kind
        0 none    1 nothing    2 evidence_s f64    3 as 2, and kept: rps f64, evidence_s f64, at_ms i64
        4 as 2, and from_ms i64

A level of kind 1 was smoothed by its age alone, as it once was; one that keeps nothing is written as kind 2, as it was
before steps were taken back. What no fold has written is refused: numbers that are not finite, evidence of nothing, and
a level kept or a return that is not before the level since. With a return yet to come no step would be seen until then.
"""

import math
import struct

from headrace.streams.core.level import Level
from headrace.streams.core.packing import PackingError, Reader
from headrace.streams.core.taken_back import Followed

_BASE = struct.Struct("<BdqH")
_EVIDENCE = struct.Struct("<d")
_KEPT = struct.Struct("<ddq")
_FROM = struct.Struct("<q")
_NONE, _BARE, _PLAIN, _KEEPING, _RETURNED = range(5)
_BARE_EVIDENCE_S = 6.0
"""Of a level that was smoothed with a time constant of three seconds."""


def pack_level(followed: Followed | None, panes: int) -> bytes:
    """Give the bytes of a level, or of none, that so many panes follow."""
    if followed is None:
        return _BASE.pack(_NONE, 0.0, 0, panes)
    level, kept, from_ms = followed
    kind, more = _PLAIN, b""
    if kept is not None:
        kind, more = _KEEPING, _KEPT.pack(*kept)
    elif from_ms is not None:
        kind, more = _RETURNED, _FROM.pack(from_ms)
    return _BASE.pack(kind, level.rps, level.at_ms, panes) + _EVIDENCE.pack(level.evidence_s) + more


def read_level(reader: Reader) -> tuple[Followed | None, int]:
    """Read what `pack_level` wrote, or wrote once: the level, and how many panes follow.

    Raises:
        PackingError: there is no such kind, fewer bytes are left, or no fold came to such a level.
    """
    kind, rps, at_ms, panes = reader.take(_BASE)
    if kind == _NONE:
        return None, panes
    if kind > _RETURNED:
        raise PackingError(f"a level of kind {kind}; the last one known is {_RETURNED}")
    (evidence_s,) = (_BARE_EVIDENCE_S,) if kind == _BARE else reader.take(_EVIDENCE)
    level = _sound(Level(rps, evidence_s, at_ms))
    if kind == _KEEPING:
        kept = _sound(Level(*reader.take(_KEPT)))
        _before(kept.at_ms, level)
        return Followed(level, kept=kept), panes
    if kind == _RETURNED:
        (from_ms,) = reader.take(_FROM)
        _before(from_ms, level)
        return Followed(level, from_ms=from_ms), panes
    return Followed(level), panes


def _sound(level: Level) -> Level:
    if not (0.0 <= level.rps < math.inf and 0.0 < level.evidence_s < math.inf):
        raise PackingError(f"a level of {level.rps} RPS by {level.evidence_s} s of evidence")
    return level


def _before(at_ms: int, level: Level) -> None:
    if at_ms >= level.at_ms:
        raise PackingError(f"a level of {level.at_ms} ms that goes back to {at_ms}")
