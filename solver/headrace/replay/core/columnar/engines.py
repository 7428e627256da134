"""The fold of the engines' signals, many at a time: regular engines in arrays, all others in the live fold.

    records ──► columns ──► rounds (each engine at most once) ──► Windows
       └── an engine that does anything irregular goes over to the live fold, with all that it holds, for good

The states are those of `Refold`, to the bit, but without percentiles and the ledger of series, which no tick reads.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from headrace.replay.core.columnar.batch import Batch, batch_of
from headrace.replay.core.columnar.cursor import Ints
from headrace.replay.core.columnar.rows import Rows
from headrace.replay.core.columnar.signals import Columns, heads_of, read_columns
from headrace.replay.core.columnar.state_columns import StateColumns
from headrace.replay.core.history import Finding
from headrace.replay.core.refold import Refold
from headrace.schemas.check_state import State
from headrace.schemas.codec import SchemaSource
from headrace.schemas.ids import is_identifier
from headrace.schemas.raw import RawRecord
from headrace.schemas.state import EngineState
from headrace.schemas.topics import Topic
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings


class ColumnarEngines:
    """The fold of the engines' signals topic; `headrace.replay.core.play_signals.Fold`."""

    def __init__(self, topic: Topic, settings: StreamsSettings, registry: SchemaSource | None = None) -> None:
        self._topic = topic
        self._settings = settings
        self._live = Refold(topic, settings, registry)
        self._rows = Rows(settings)
        self._row: dict[bytes, int] = {}
        self._over: set[bytes] = set()
        self._touched: set[int] = set()
        self._models: list[bytes] = []

    def begin(self, states: Mapping[bytes, State]) -> None:
        """Take up recorded states."""
        for key, state in states.items():
            accumulator = EngineAccumulator.resume(cast("EngineState", state), self._settings)
            if self._rows.holds(accumulator, self._models):
                self._rows.load(self._new_row(key), accumulator, self._models)
            else:
                self._live.begin({key: state})
                self._over.add(key)

    def take(self, records: Iterable[RawRecord], fleet: Container[bytes] | None) -> None:
        """Fold records, each partition's in the order of its offsets."""
        listed = list(records)
        if listed:
            self.take_batch(batch_of(self._topic.name, listed), fleet)

    def take_batch(self, batch: Batch, fleet: Container[bytes] | None) -> None:
        """Fold a batch, each partition's records in the order of their offsets."""
        head, alike = heads_of(batch)
        alike[list(batch.odd)] = False
        distinct = list(dict.fromkeys(batch.key))
        numbers = {key: n for n, key in enumerate(distinct)}
        number = np.fromiter(map(numbers.__getitem__, batch.key), np.int64, len(batch))
        regular = np.array([self._may_be_regular(key, fleet) for key in distinct], dtype=np.bool_)
        strange = np.unique(number[regular[number] & ~alike])
        for n in map(int, strange):
            # An engine with a single record of another kind goes over with all of them, so that their order stays.
            self._go_over(distinct[n] or b"")
            regular[n] = False
        theirs = regular[number]
        live = [batch.record(n) for n in np.flatnonzero(~theirs).tolist()]
        if theirs.any():
            keys = [key or b"" for key in distinct]
            live += self._columns(batch.only(theirs), head, number[theirs], keys)
        if live:
            self._live.take(sorted(live, key=lambda record: (record.partition, record.offset)), fleet)

    def told(self) -> Mapping[bytes, State]:
        """Give the states that changed since the last time, without panes and percentiles."""
        columns, live = self.told_columns()
        return {**(dict(columns.states()) if columns else {}), **live}

    def told_columns(self) -> tuple[StateColumns | None, Mapping[bytes, State]]:
        """Give the same, the regular engines' as columns; None where there are none."""
        columns = self._rows.told(sorted(self._touched), self._models) if self._touched else None
        self._touched.clear()
        live = self._live.told().items()
        return columns, {key: without_percentiles(cast("EngineState", state)) for key, state in live}

    def forget(self, key: bytes) -> None:
        """Drop an engine."""
        self._live.forget(key)
        self._over.discard(key)
        e = self._row.pop(key, None)
        if e is not None:
            self._rows.clear(e)
            self._touched.discard(e)

    def findings(self) -> tuple[Finding, ...]:
        """Give what was refused."""
        return self._live.findings()

    def _may_be_regular(self, key: bytes | None, fleet: Container[bytes] | None) -> bool:
        """Say whether a key's records may be of a regular engine; the others' the live fold refuses, or knows."""
        if key is None or key in self._over or (fleet is not None and key not in fleet):
            return False
        return key in self._row or is_identifier(key.decode("utf-8", "replace"))

    def _columns(self, batch: Batch, head: bytes, number: Ints, keys: list[bytes]) -> list[RawRecord]:
        """Fold a batch of one schema, of keys that may be regular; gives the records that are the live fold's.

        Args:
            batch: what to fold.
            head: of its schema.
            number: (N,) which key each record has.
            keys: by number; more than the batch has.
        """
        columns = read_columns(batch, head, self._models)
        belongs = np.array([partition_of(key, self._topic.partitions) for key in keys], dtype=np.int64)
        regular = columns.regular & (belongs[number] == batch.partition)
        over = np.zeros(len(keys), dtype=np.bool_)
        over[number[~regular]] = True
        for n in np.flatnonzero(over).tolist():
            self._go_over(keys[n])
        live = [batch.record(n) for n in np.flatnonzero(over[number]).tolist()]
        mine = np.flatnonzero(~over[number])
        if len(mine):
            rows = np.full(len(keys), -1)
            known: list[int] = np.unique(number[mine]).tolist()
            for n in known:
                row = self._row.get(keys[n])
                rows[n] = self._new_row(keys[n]) if row is None else row
            live += self._rounds(batch, mine, rows[number[mine]], columns)
        return live

    def _rounds(self, batch: Batch, message: Ints, e: Ints, columns: Columns) -> list[RawRecord]:
        """Fold messages in rounds, in each of which an engine comes once at most; gives those of who goes over."""
        offsets, times = batch.offset[message], batch.timestamp_ms[message]
        live: list[RawRecord] = []
        new = offsets > self._rows.applied[e]
        occurrence = _occurrences(np.where(new, e, -1))
        for number in range(int(occurrence[new].max(initial=-1)) + 1):
            of = np.flatnonzero(new & (occurrence == number))
            # What came twice was not known to when the batch began.
            of = of[offsets[of] > self._rows.applied[e[of]]]
            of = of[[self._rows.key[each] not in self._over for each in e[of].tolist()]] if live else of
            start, end = columns.start_ms[message[of]], columns.end_ms[message[of]]
            stays = columns.is_apart[message[of]] | self._rows.windows.regular(e[of], start, end)
            leaving: list[int] = e[of[~stays]].tolist()
            for each in leaving:
                left = message[new & (e == each) & (occurrence >= number)]
                live += [batch.record(n) for n in left.tolist()]
                self._go_over(self._rows.key[each])
            of = of[stays]
            self._rows.apply(e[of], (message[of], offsets[of], times[of]), columns)
            self._touched.update(e[of].tolist())
        return live

    def _new_row(self, key: bytes) -> int:
        e = self._row[key] = self._rows.add(key)
        return e

    def _go_over(self, key: bytes) -> None:
        """Hand an engine to the live fold, with what its row holds."""
        self._over.add(key)
        e = self._row.pop(key, None)
        if e is not None:
            self._touched.discard(e)
            self._live.adopt(key, self._rows.accumulator(e, self._models))
            self._rows.clear(e)


def without_percentiles(state: EngineState) -> EngineState:
    """Give a state as a replay tells it: without what no tick reads."""
    latencies = tuple(replace(each, p50_s=None, p95_s=None, p99_s=None) for each in state.latencies)
    return replace(state, latencies=latencies, panes=b"", series=None)


def _occurrences(values: Ints) -> Ints:
    """Give for each element how many of the same come before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(values) else np.zeros(0, dtype=np.bool_)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(values)), 0))
    occurrence = np.empty(len(values), dtype=np.int64)
    occurrence[order] = np.arange(len(values)) - first
    return occurrence
