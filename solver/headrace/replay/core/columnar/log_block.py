"""A block of an exported file -> a batch: where each record's key and value lie, without taking the values out.

    record   offset | timestamp_ms | 1 length key | 1 length value | 0        headers empty, as of nearly all

Any other record (headers, no key, no value, a long or a very short one) is read by the Avro reader that is handed in.
Source of the form: Avro specification, "Binary Encoding".
"""

import re
from collections.abc import Callable

import numpy as np

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.columnar.cursor import Cursor, Ints, spans_of
from headrace.replay.core.history import Place
from headrace.schemas.raw import RawRecord

_MORE = 0x80
_LONGEST = 2 * 10 + 2
"""Of two numbers, a branch, and the length of a short key."""
_PADDING = 256
"""Behind a block: more than the head, the key and the length of a record that begins inside it."""
_SOMETHING = 2
"""Branch 1 of a union, as a varint."""
_HEAD = re.compile(rb"[\x80-\xff]*[\x00-\x7f][\x80-\xff]*[\x00-\x7f]\x02[\x00-\x7f]", re.DOTALL)
"""Offset, timestamp, and the length of a key below 64 bytes. A value has 64 to 8191 bytes here."""

ReadOne = Callable[[Place, bytes, int], tuple[RawRecord, int]]
"""Reads one record of a block, from where it begins; gives it, and where it ends."""


def read_block(place: Place, data: bytes, count: int, read_one: ReadOne) -> Batch:
    """Give the records of a block.

    Raises:
        ValueError: it does not end where its last record ends; others, where `read_one` does.
    """
    whole, size = data + bytes(_PADDING), len(data)
    first, key, value, stopped = _alike(whole, size, count)
    begin: list[int] = first.tolist()
    start: list[int] = (value + 3).tolist()
    end: list[int] = stopped.tolist()
    keys: list[bytes | None] = [whole[a:b] for a, b in zip(key.tolist(), value.tolist(), strict=True)]
    odd: dict[int, RawRecord] = {}
    at = end[-1] + 1 if end else 0
    for n in range(len(begin), count):
        begin.append(at)
        head = _HEAD.match(whole, at)
        key_at = at if head is None else head.end()
        value_at = key_at + (whole[key_at - 1] >> 1)
        low, high = whole[value_at + 1], whole[value_at + 2]
        stop = value_at + 3 + ((low & 0x7F | high << 7) >> 1)
        if head is None or whole[value_at] != _SOMETHING or low < _MORE or high >= _MORE or stop >= size or whole[stop]:
            record, at = read_one(place, data, at)
            odd[n] = record
            keys.append(record.key)
            start.append(-1)
            end.append(-1)
            continue
        keys.append(whole[key_at:value_at])
        start.append(value_at + 3)
        end.append(stop)
        at = stop + 1
    if at != size:
        raise ValueError(f"a block of {size} bytes ends at {at}")
    return _batch(place, data, np.array(begin, dtype=np.int64), (keys, start, end), odd)


def _alike(whole: bytes, size: int, count: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Give where records, their keys, their values' unions and their values' ends lie, (n,) each.

    Of those before the first that is odd, or whose offset or time is of another length than the first record's.
    """
    head = _HEAD.match(whole)
    if head is None or not count or head.end() > _LONGEST:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none
    begin, value, at, long = list[int](), list[int](), 0, head.end()
    # Where a record lies is known from the one before alone; what it looks like is seen of all at once, below.
    for _ in range(count):
        if at >= size:
            break
        begin.append(at)
        at += long
        at += whole[at - 1] >> 1
        value.append(at)
        at += 4 + ((whole[at + 1] & 0x7F | whole[at + 2] << 7) >> 1)
    first, value_at = np.array(begin), np.array(value)
    buffer, heads = np.frombuffer(whole, dtype=np.uint8), spans_of(whole, long)[first]
    low, high = buffer[value_at + 1].astype(np.int64), buffer[value_at + 2].astype(np.int64)
    stop = value_at + 3 + ((low & 0x7F | high << 7) >> 1)
    good = ((heads[:, :-2] < _MORE) == (heads[:1, :-2] < _MORE)).all(axis=1)
    good &= (heads[:, -2] == _SOMETHING) & (heads[:, -1] < _MORE) & (buffer[value_at] == _SOMETHING)
    good &= (low >= _MORE) & (high < _MORE) & (stop < size)
    good &= buffer[np.minimum(stop, size)] == 0
    kept = len(good) if good.all() else int(good.argmin())
    return first[:kept], first[:kept] + long, value_at[:kept], stop[:kept]


def _batch(
    place: Place,
    data: bytes,
    begin: Ints,
    told: tuple[list[bytes | None], list[int], list[int]],
    odd: dict[int, RawRecord],
) -> Batch:
    keys, start, end = told
    every = np.arange(len(keys))
    cursor = Cursor(data, begin, np.full(len(keys), len(data)), 0)
    offset, timestamp_ms = cursor.longs(every), cursor.longs(every)
    partition = np.full(len(keys), place[1])
    values = np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)
    return Batch(place[0], data, partition, offset, timestamp_ms, keys, *values, odd)
