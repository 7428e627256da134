"""The fold of the engines' signals, many at a time: regular engines in arrays, all others in the live fold.

    records ──► columns ──► rounds (each engine at most once) ──► Windows
       └── an engine that does anything irregular goes over to the live fold, with all that it holds, for good

The states are those of `Refold`, to the bit, but without percentiles, which no tick reads.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from headrace.replay.core.columnar.cursor import Ints
from headrace.replay.core.columnar.rows import Rows
from headrace.replay.core.columnar.signals import Columns, head_of, read_columns
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
        mine: list[tuple[bytes, RawRecord]] = []
        live: list[RawRecord] = []
        for record in records:
            if not self._is_candidate(record, fleet):
                live.append(record)
                continue
            head = b"" if record.headers else head_of(record.value or b"")
            if not head and record.key is not None and record.key not in self._over:
                self._go_over(record.key)
            mine.append((head, record))
        if len({head for head, _ in mine if head}) > 1:
            # Two writers' schemas in one batch: one after the other would turn their order around.
            for key in {record.key for _, record in mine if record.key is not None}:
                self._go_over(key)
        live += [record for _, record in mine if record.key in self._over]
        columns = [record for _, record in mine if record.key not in self._over]
        if columns:
            live += self._columns(columns)
        if live:
            self._live.take(sorted(live, key=lambda record: (record.partition, record.offset)), fleet)

    def told(self) -> Mapping[bytes, State]:
        """Give the states that changed since the last time, without panes and percentiles."""
        keys = {e: key for key, e in self._row.items() if e in self._touched}
        told: dict[bytes, State] = dict(self._rows.states(keys, self._models))
        self._touched.clear()
        for key, state in self._live.told().items():
            told[key] = without_percentiles(cast("EngineState", state))
        return told

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

    def _is_candidate(self, record: RawRecord, fleet: Container[bytes] | None) -> bool:
        """Say whether a record may be of a regular engine; the others are for the live fold to refuse or to know."""
        key = record.key
        if key is None or record.value is None or (fleet is not None and key not in fleet):
            return False
        if key in self._row or key in self._over:
            return True
        belongs = partition_of(key, self._topic.partitions) == record.partition
        return belongs and is_identifier(key.decode("utf-8", "replace"))

    def _columns(self, records: Sequence[RawRecord]) -> list[RawRecord]:
        """Fold records of one schema; gives those that are the live fold's."""
        timestamps = np.array([record.timestamp_ms for record in records], dtype=np.int64)
        columns = read_columns([record.value or b"" for record in records], timestamps, self._models)
        keys = [record.key or b"" for record in records]
        for n, key in enumerate(keys):
            if (not columns.regular[n] or columns.engine[n] != key) and key not in self._over:
                self._go_over(key)
        mine = [n for n, key in enumerate(keys) if key not in self._over]
        live = [record for record, key in zip(records, keys, strict=True) if key in self._over]
        if mine:
            e = np.array([self._row[key] if (key := keys[n]) in self._row else self._new_row(key) for n in mine])
            live += self._rounds([records[n] for n in mine], np.array(mine), e, columns)
        return live

    def _rounds(self, records: Sequence[RawRecord], message: Ints, e: Ints, columns: Columns) -> list[RawRecord]:
        """Fold messages in rounds, in each of which an engine comes once at most; gives those of who goes over."""
        offsets = np.array([record.offset for record in records], dtype=np.int64)
        times = np.array([record.timestamp_ms for record in records], dtype=np.int64)
        live: list[RawRecord] = []
        new = offsets > self._rows.applied[e]
        occurrence = _occurrences(np.where(new, e, -1))
        for number in range(int(occurrence[new].max(initial=-1)) + 1):
            of = np.flatnonzero(new & (occurrence == number))
            of = of[[self._rows.key[each] not in self._over for each in e[of].tolist()]] if live else of
            start, end = columns.start_ms[message[of]], columns.end_ms[message[of]]
            stays = self._rows.windows.regular(e[of], start, end)
            leaving: list[int] = e[of[~stays]].tolist()
            for each in leaving:
                live += [records[n] for n in np.flatnonzero(new & (e == each) & (occurrence >= number)).tolist()]
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
    """Give a state as a replay tells it."""
    latencies = tuple(replace(each, p50_s=None, p95_s=None, p99_s=None) for each in state.latencies)
    return replace(state, latencies=latencies, panes=b"")


def _occurrences(values: Ints) -> Ints:
    """Give for each element how many of the same come before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(values) else np.zeros(0, dtype=np.bool_)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(values)), 0))
    occurrence = np.empty(len(values), dtype=np.int64)
    occurrence[order] = np.arange(len(values)) - first
    return occurrence
