"""Bodies of EngineSignals -> columns, of those that are regular: without series or lineage.

    message   engine, source, vantage, period, status (N,)
    entry     message, model, metric, count, sum      (M,), of distributions with a count, in the order of the messages
    ended     message, model, succeeded, failed       (K,), of outcomes, likewise

A message is regular where every check of `check_signal` holds of it; the rest is left to the live code, which says what
is wrong with it. Buckets are checked and not kept: no tick reads percentiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.columnar.cursor import Cursor, Floats, Ints, Marks, spans_of
from headrace.schemas.avro_schemas import fingerprint, raw_schema, released
from headrace.schemas.check_series import MAX_AHEAD_MS
from headrace.schemas.check_signals import (
    MAX_COUNT,
    MAX_IN_ENGINE,
    MAX_PERIOD_MS,
    MAX_REPLICAS,
    MAX_SECONDS,
)
from headrace.schemas.codec import SINGLE_OBJECT_MARKER
from headrace.schemas.histogram import MAX_INDEX, MIN_INDEX
from headrace.schemas.ids import is_identifier
from headrace.schemas.signals import Health, Metric, Vantage
from headrace.streams.core.engine import KEPT_APART

MAX_ENTRIES = 16
"""Distributions of a regular message, and models whose outcomes it tells; more are left to the live code."""
MAX_MODELS = 12
"""Models that are told apart by number; what names further ones is left to the live code."""
_NAME = "EngineSignals"
_HEAD = len(SINGLE_OBJECT_MARKER) + 8


_TAILS: dict[bytes, tuple[str, ...]] = {
    SINGLE_OBJECT_MARKER + fingerprint(raw): tuple(field["name"] for field in raw["fields"][7:])
    for raw in (raw_schema(_NAME), *(raw for (_, name), raw in released().items() if name == "engine_signals"))
}
"""By the beginning of a value: which nullable fields follow the status in that writer's schema."""
METRICS = tuple(Metric)
HEALTHS = tuple(Health)
VANTAGES = tuple(Vantage)
_APART = tuple(n for n, each in enumerate(VANTAGES) if each in KEPT_APART)


@dataclass(frozen=True, slots=True)
class Ended:
    """How requests ended, (K,): of which message, of which model by number, and how many."""

    message: Ints
    model: Ints
    succeeded: Ints
    failed: Ints


_NOTHING_ENDED = Ended(*np.zeros((4, 0), dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Columns:
    """What N messages say. `regular` marks those of which all else may be believed.

    Attributes:
        regular: (N,)
        vantage: (N,) its number; what says of none is the engine's own.
        is_apart: (N,) whether its latencies and status are those of somebody else, and do not count.
        start_ms, end_ms: (N,) the period.
        has_status: (N,)
        health: (N,) number of the health.
        replicas: three pairs (values, measured), (N,): desired, ready, reporting.
        gauges: (3, N) running, waiting, KV use; NaN where not measured.
        message: (M,) message of each entry.
        model: (M,) model ids as bytes, by number in `models`.
        metric: (M,)
        count: (M,) 0 and more.
        sum_s: (M,)
        ended: of those that tell how requests ended.
        models: bytes of each model.
    """

    regular: Marks
    vantage: Ints
    is_apart: Marks
    start_ms: Ints
    end_ms: Ints
    has_status: Marks
    health: Ints
    replicas: tuple[tuple[Ints, Marks], tuple[Ints, Marks], tuple[Ints, Marks]]
    gauges: Floats
    message: Ints
    model: Ints
    metric: Ints
    count: Ints
    sum_s: Floats
    ended: Ended
    models: list[bytes]


def heads_of(batch: Batch) -> tuple[bytes, Marks]:
    """Give the head of the first value that has one which this module reads, and which values begin with it."""
    whole = np.flatnonzero(batch.end - batch.start > _HEAD)
    bytes_ = spans_of(batch.data, _HEAD)[batch.start[whole]]
    alike = np.zeros(len(batch), dtype=np.bool_)
    for head in _TAILS:
        alike[whole] = (bytes_ == np.frombuffer(head, dtype=np.uint8)).all(axis=1)
        if alike.any():
            return head, alike
    return b"", alike


def read_columns(batch: Batch, head: bytes, models: list[bytes]) -> Columns:
    """Read values of one schema, as `head` tells; engines are told apart by their keys, which are theirs where regular.

    Args:
        batch: whole values, each with its head, and a key.
        head: as `heads_of` gives it.
        models: model ids that are known by number; new ones are added.
    """
    cursor, every = Cursor(batch.data, batch.start, batch.end, _HEAD), np.arange(len(batch))
    engine, source = cursor.strings(every), cursor.strings(every)
    vantage, start, end = cursor.longs(every), cursor.longs(every), cursor.longs(every)
    entries, entries_sound = _entries(cursor, every, models)
    has_status = cursor.branches(every)
    status = _status(cursor, every, has_status)
    ended = _NOTHING_ENDED
    for name in _TAILS[head]:
        there = cursor.branches(every)
        if name == "outcomes":
            ended = _ended(cursor, every[there], models)
        else:
            cursor.sound[there] = False
    regular = cursor.sound & (cursor.at == cursor.end) & entries_sound & status[3]
    regular &= (vantage >= 0) & (vantage < len(VANTAGES))
    regular &= (start >= 0) & (start <= end) & (end - start <= MAX_PERIOD_MS)
    regular &= end <= batch.timestamp_ms + MAX_AHEAD_MS
    regular &= cursor.identifiers(source) & _are(cursor, engine, batch.key)
    is_apart = np.isin(vantage, _APART)
    vantage = np.where(is_apart, vantage, VANTAGES.index(Vantage.ENGINE))
    return Columns(
        regular, vantage, is_apart, start, end, has_status, status[0], status[1], status[2], *entries, ended, models
    )


def _are(cursor: Cursor, spans: tuple[Ints, Ints], keys: Sequence[bytes | None]) -> Marks:
    """Say which spans hold the same bytes as the keys."""
    told = [key or b"" for key in keys]
    length = np.array([len(key) for key in told], dtype=np.int64)
    whole, first = b"".join(told), np.cumsum(length) - length
    same: Marks = spans[1] - spans[0] == length
    for size in {len(key) for key in told}:
        of = np.flatnonzero(same & (length == size))
        same[of] = (cursor.windows(size)[spans[0][of]] == spans_of(whole, size)[first[of]]).all(axis=1)
    return same


def _entries(cursor: Cursor, every: Ints, models: list[bytes]) -> tuple[tuple[Ints, Ints, Ints, Ints, Floats], Marks]:
    """Read the distributions; gives the entries, and which messages' are all sound."""
    number = cursor.longs(every)
    sound = (number >= 0) & (number <= MAX_ENTRIES)
    number = np.where(sound & cursor.sound, number, 0)
    parts: list[tuple[Ints, Ints, Ints, Ints, Floats]] = []
    seen = np.zeros(len(every), dtype=np.int64)
    for n in range(int(number.max(initial=0))):
        of = np.flatnonzero(number > n)
        model = _numbered(cursor, cursor.strings(of), models)
        metric, count, sum_s = cursor.longs(of), cursor.longs(of), cursor.doubles(of)
        low, high = cursor.maybe_doubles(of), cursor.maybe_doubles(of)
        zeros, first = cursor.longs(of), cursor.longs(of)
        buckets, total, least = cursor.long_arrays(of)
        good: Marks = _good(count, sum_s, low, high) & (zeros >= 0) & (zeros <= np.maximum(count, 0))
        good &= (metric >= 0) & (metric < len(METRICS)) & (model >= 0)
        inside = (first >= MIN_INDEX) & (first + buckets <= MAX_INDEX + 1) & (least >= 0) & (zeros + total == count)
        good &= (inside & (buckets > 0)) | ((buckets == 0) & ((zeros == 0) | (zeros == count)))
        # At most 62 (model, metric) pairs have a bit of their own; a pair that comes twice is a live code's matter.
        pair = np.clip(model * len(METRICS) + metric, 0, 63)
        bit = np.int64(1) << pair
        good &= (pair < 62) & ((seen[of] & bit) == 0)
        seen[of] |= bit
        sound[of[~good]] = False
        parts.append((of, model, metric, count, sum_s))
    filled = np.flatnonzero(number > 0)
    cursor.close_arrays(filled)
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return (none, none, none, none, np.zeros(0)), sound
    joined = [np.concatenate(each) for each in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    message, model, metric, count, sum_s = (each[order] for each in joined)
    return (message, model, metric, count, sum_s), sound


def _ended(cursor: Cursor, there: Ints, models: list[bytes]) -> Ended:
    """Read the outcomes of the messages that have some; a message that is not sound is marked."""
    number = cursor.longs(there)
    cursor.sound[there[(number < 0) | (number > MAX_ENTRIES)]] = False
    number = np.where(cursor.sound[there], number, 0)
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    seen = np.zeros(len(cursor.sound), dtype=np.int64)
    for n in range(int(number.max(initial=0))):
        of = there[number > n]
        model = _numbered(cursor, cursor.strings(of), models)
        succeeded, failed = cursor.longs(of), cursor.longs(of)
        good: Marks = (succeeded >= 0) & (succeeded <= MAX_COUNT) & (failed >= 0) & (failed <= MAX_COUNT)
        bit = np.int64(1) << np.clip(model, 0, MAX_MODELS)
        good &= (model >= 0) & (model < MAX_MODELS) & ((seen[of] & bit) == 0)
        seen[of] |= bit
        cursor.sound[of[~good]] = False
        parts.append((of, model, succeeded, failed))
    cursor.close_arrays(there[number > 0])
    if not parts:
        return _NOTHING_ENDED
    joined = [np.concatenate(each) for each in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return Ended(*(each[order] for each in joined))


def _good(count: Ints, sum_s: Floats, low: Floats, high: Floats) -> Marks:
    """Hold counts, sums and extremes against their bounds; NaN is what was not measured, a comparison with it false."""
    floor = np.where(np.isnan(low), 0.0, low)
    good: Marks = (count >= 0) & (count <= MAX_COUNT) & np.isfinite(sum_s) & (sum_s >= 0.0)
    good &= (sum_s <= MAX_SECONDS * np.maximum(count, 1)) & ((count > 0) | (sum_s == 0.0))
    good &= np.isnan(low) | ((low >= 0.0) & (low <= MAX_SECONDS))
    good &= np.isnan(high) | ((high >= floor) & (high <= MAX_SECONDS))
    return good


def _status(
    cursor: Cursor, every: Ints, there: Marks
) -> tuple[Ints, tuple[tuple[Ints, Marks], tuple[Ints, Marks], tuple[Ints, Marks]], Floats, Marks]:
    of, size = every[there], len(every)
    health = np.zeros(size, dtype=np.int64)
    health[of] = cursor.longs(of)
    sound = (health >= 0) & (health < len(HEALTHS))
    replicas: list[tuple[Ints, Marks]] = []
    for _ in range(3):
        values, known = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        values[of], known[of] = cursor.maybe_longs(of)
        sound &= (values >= 0) & (values <= MAX_REPLICAS)
        replicas.append((values, known))
    gauges = np.full((3, size), np.nan)
    for n, most in enumerate((MAX_IN_ENGINE, MAX_IN_ENGINE, 1.0)):
        gauges[n, of] = cursor.maybe_doubles(of)
        sound &= np.isnan(gauges[n]) | ((gauges[n] >= 0.0) & (gauges[n] <= most))
    return health, (replicas[0], replicas[1], replicas[2]), gauges, sound


def _numbered(cursor: Cursor, spans: tuple[Ints, Ints], models: list[bytes]) -> Ints:
    """Give each name's number in `models`; names are few, so each known one is compared with all that are left."""
    start, end = spans
    found, length = np.full(len(start), -1, dtype=np.int64), end - start
    left = np.flatnonzero(length > 0)
    number = 0
    while len(left):
        if number == len(models):
            models.append(cursor.text(int(start[left[0]]), int(end[left[0]])))
        name = np.frombuffer(models[number], dtype=np.uint8)
        same = length[left] == len(name)
        same[same] = (cursor.windows(len(name))[start[left[same]]] == name).all(axis=1)
        found[left[same]] = number if is_identifier(models[number].decode("utf-8", "replace")) else -1
        left = left[~same]
        number += 1
    return found
