"""All that a state says of a regular engine, by row: its window, its last status, and how far it was read."""

import math
from collections.abc import Sequence

import numpy as np

from headrace.replay.core.columnar.cursor import Floats, Ints, Marks
from headrace.replay.core.columnar.outcome_panes import OutcomeArrays, OutcomeColumns
from headrace.replay.core.columnar.signals import HEALTHS, MAX_MODELS, METRICS, Columns
from headrace.replay.core.columnar.state_columns import INVALIDS, StateColumns
from headrace.replay.core.columnar.windows import NOWHERE, UNKNOWN_PERIOD, Windows
from headrace.schemas.signals import EngineStatus, Metric
from headrace.schemas.state import Invalid
from headrace.streams.core.completions import COVERED, RECENT_MS
from headrace.streams.core.engine import EngineAccumulator
from headrace.streams.core.engine_pane import EnginePane
from headrace.streams.core.ledger import Ledger
from headrace.streams.core.series import Entry
from headrace.streams.core.smoothing import Smoothed
from headrace.streams.settings import StreamsSettings

MAX_SERIES = MAX_MODELS * len(METRICS)
"""Series that the arrays have room for, over all engines; an engine with others is the live fold's."""
_SOUND = INVALIDS.index(Invalid.NO)


class Rows:
    """Engines by row. `key` is the Kafka key of each."""

    def __init__(self, settings: StreamsSettings) -> None:
        self.settings = settings
        self.windows = Windows(settings)
        self.key: list[bytes] = []
        self.applied: Ints = np.full(64, -1)
        self._times: Ints = np.zeros(64, dtype=np.int64)
        self._status_end_ms: Ints = np.full(64, -1)
        self._health: Ints = np.zeros(64, dtype=np.int64)
        self._numbers: Floats = np.full((64, 6), np.nan)
        self._late: Ints = np.zeros(64, dtype=np.int64)
        self._apart_ms: Ints = np.full(64, NOWHERE)
        self.outcomes: OutcomeArrays | None = None
        """Of those that count how requests ended; None before one does."""

    def add(self, key: bytes) -> int:
        """Give a new engine its row."""
        e = len(self.key)
        self.key.append(key)
        self.windows.grow(e + 1, self.windows.series)
        if e >= len(self.applied):
            for name in ("applied", "_times", "_status_end_ms", "_health", "_numbers", "_late", "_apart_ms"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate((old, np.empty_like(old))))
        self._reset(e)
        return e

    def clear(self, e: int) -> None:
        """Empty a row; it is not used again."""
        self.windows.clear(e)
        if self.outcomes is not None:
            self._outcomes(0).clear(e)
        self._reset(e)

    def apply(self, e: Ints, of: tuple[Ints, Ints, Ints], columns: Columns) -> None:
        """Fold one message each of engines: `of` are the messages, and their records' offsets and times."""
        message, offsets, times = of
        self.applied[e] = offsets
        apart = columns.is_apart[message]
        self._apply_own(e[~apart], message[~apart], times[~apart], columns)
        self._apart_ms[e[apart]] = np.maximum(self._apart_ms[e[apart]], columns.end_ms[message[apart]])
        if len(columns.ended.message):
            self._count(e, message, columns)

    def _apply_own(self, e: Ints, message: Ints, times: Ints, columns: Columns) -> None:
        """Fold what engines say themselves."""
        windows = self.windows
        windows.grow(len(self.key), min(MAX_SERIES, len(columns.models) * len(METRICS)))
        windows.apply(e, columns.start_ms[message], columns.end_ms[message])
        row = np.full(len(columns.regular), -1)
        row[message] = e
        some = np.flatnonzero(row[columns.message] >= 0)
        series = columns.model[some] * len(METRICS) + columns.metric[some]
        windows.enter(row[columns.message[some]], series, columns.count[some], columns.sum_s[some])
        self._times[e] = times
        there = columns.has_status[message]
        with_status, said = e[there], message[there]
        self._status_end_ms[with_status] = columns.end_ms[said]
        self._health[with_status] = columns.health[said]
        for n, (values, known) in enumerate(columns.replicas):
            self._numbers[with_status, n] = np.where(known[said], values[said], np.nan)
        self._numbers[with_status, 3:] = columns.gauges[:, said].T
        windows.close(e)

    def _count(self, e: Ints, message: Ints, columns: Columns) -> None:
        """Count how requests ended, as the engines or their gateways say."""
        outcomes, ended = self._outcomes(len(columns.models)), columns.ended
        row = np.full(len(columns.regular), -1)
        row[message] = e
        some = np.flatnonzero(row[ended.message] >= 0)
        of = ended.message[some]
        who = row[of], columns.vantage[of], ended.model[some]
        counts = ended.succeeded[some], ended.failed[some]
        outcomes.add(who, self.windows.newest(row[of]), columns.end_ms[of], counts)

    def _outcomes(self, models: int) -> OutcomeArrays:
        """Give the outcomes, with room for all engines and for so many models."""
        if self.outcomes is None:
            self.outcomes = OutcomeArrays(self.windows.grid)
        self.outcomes.grow(len(self.key), min(MAX_MODELS, models))
        return self.outcomes

    def told(self, rows: Sequence[int], models: list[bytes]) -> StateColumns:
        """Give the states of rows, at least one, as columns."""
        ordered = sorted(rows)
        e = np.array(ordered, dtype=np.int64)
        w, grid = self.windows, self.windows.grid
        slots, held = w.ordered(e)
        covered = np.where(held, w.cover_to[e[:, None], slots] - w.cover_from[e[:, None], slots], 0)
        seen = w.watermark_ms[e] != NOWHERE
        covered_ms, watermark = covered.sum(axis=1), np.where(seen, w.watermark_ms[e], 0)
        window_ms = watermark - (-(-watermark // grid.pane_ms) - grid.count) * grid.pane_ms
        coverage = covered_ms / window_ms
        named = _names(models)
        names = [(named[s // len(METRICS)], METRICS[s % len(METRICS)]) for s in range(w.series)]
        order = np.array(sorted(range(w.series), key=names.__getitem__), dtype=np.int64)
        known = w.known[e][:, order]
        row, place = np.nonzero(known)
        series = order[place]
        count, sum_s = w.summed(e, row, series, (slots, held))
        with np.errstate(invalid="ignore"):
            mean_s = sum_s / np.where(count > 0, count, np.nan)
        value, at_ms = w.smoothed(e)
        smoothed_s = np.where(at_ms[row, series] == NOWHERE, np.nan, value[row, series])
        status_end_ms = self._status_end_ms[e]
        low = np.where(coverage < self.settings.min_coverage, INVALIDS.index(Invalid.LOW_COVERAGE), _SOUND)
        return StateColumns(
            keys=tuple(self.key[each] for each in ordered),
            names=tuple(names),
            as_of_ms=watermark // grid.pane_ms * grid.pane_ms,
            last_signal_ms=watermark,
            signal_timestamp_ms=self._times[e],
            health=self._health[e],
            numbers=self._numbers[e],
            coverage=coverage,
            is_held=(status_end_ms >= 0) & (status_end_ms < watermark),
            is_apart=self._apart_ms[e] > watermark - self.settings.window_ms,
            invalid=np.where(seen, low, INVALIDS.index(Invalid.NO_SIGNAL_YET)),
            late=self._late[e],
            applied_offset=self.applied[e],
            period_ms=w.period_ms[e],
            covered_ms=covered_ms,
            finished_rps=self._finished(e, slots, held, covered),
            series_of=known.sum(axis=1),
            series=series,
            count=count,
            mean_s=mean_s,
            smoothed_s=smoothed_s,
            outcomes=self._ended(e, models),
        )

    def _ended(self, e: Ints, models: list[bytes]) -> OutcomeColumns | None:
        if self.outcomes is None:
            return None
        return self._outcomes(len(models)).told(e, self.windows.newest(e), _names(models)[:MAX_MODELS])

    def holds(self, accumulator: EngineAccumulator, models: list[bytes]) -> bool:
        """Say whether an accumulator can be a row: nothing in it that the arrays have no place for."""
        named = _named(accumulator)
        listed = list(dict.fromkeys([*models, *named]))
        room = all(listed.index(model) < MAX_MODELS for model in named)
        panes = accumulator.window.panes.values()
        thinned = any(entry.thinned for pane in panes for entry in pane.entries.values())
        plain = _has_no_series(accumulator.ledger) and not accumulator.dropped and not accumulator.tbot_kinds
        return room and plain and not thinned and all(len(pane.cover) <= 1 for pane in panes)

    def load(self, e: int, accumulator: EngineAccumulator, models: list[bytes]) -> None:
        """Fill a row with what an accumulator holds."""
        w, progress = self.windows, accumulator.window.progress
        models += [model for model in _named(accumulator) if model not in models]
        if accumulator.outcomes:
            self._outcomes(len(models)).load(e, accumulator.outcomes.rows(), models)
        if accumulator.ledger is not None and accumulator.ledger.apart_ms is not None:
            self._apart_ms[e] = accumulator.ledger.apart_ms
        self.applied[e] = progress.applied_offset
        if progress.watermark_ms is None:
            return
        w.grow(len(self.key), min(MAX_SERIES, len(models) * len(METRICS)))
        number = [models.index(s.model.encode()) * len(METRICS) + METRICS.index(s.metric) for s in accumulator.series]
        w.watermark_ms[e] = progress.watermark_ms
        w.open_from[e] = NOWHERE if accumulator.window.open_from is None else accumulator.window.open_from
        w.period_ms[e] = UNKNOWN_PERIOD if accumulator.period_ms is None else accumulator.period_ms
        for s, series in zip(number, accumulator.series, strict=True):
            w.known[e, s] = True
            if series.base is not None:
                w.base[e, s], w.base_ms[e, s] = series.base
        for index, pane in accumulator.window.panes.items():
            slot = index % w.grid.count
            w.held[e, slot] = index
            if pane.cover:
                w.cover_from[e, slot], w.cover_to[e, slot] = pane.cover[0]
                w.covered_to[e] = max(int(w.covered_to[e]), pane.cover[0][1])
            for n, entry in pane.entries.items():
                w.count[e, number[n], slot], w.sum_s[e, number[n], slot] = entry.observations, entry.sum_s
        self._times[e] = progress.signal_timestamp_ms
        self._late[e], self._status_end_ms[e] = progress.late, accumulator.status_end_ms
        status = accumulator.status
        self._health[e] = HEALTHS.index(status.health)
        told = (status.replicas_desired, status.replicas_ready, status.replicas_reporting)
        gauges = (status.running, status.waiting, status.kv_usage)
        self._numbers[e] = [np.nan if value is None else value for value in (*told, *gauges)]

    def accumulator(self, e: int, models: list[bytes]) -> EngineAccumulator:
        """Give a row as the live fold's accumulator; its histograms are empty."""
        w = self.windows
        made = EngineAccumulator(self.key[e].decode(), self.settings)
        progress = made.window.progress
        progress.applied_offset = int(self.applied[e])
        self._hand_over_apart(e, made, models)
        if w.watermark_ms[e] == NOWHERE:
            return made
        progress.watermark_ms, progress.signal_timestamp_ms = int(w.watermark_ms[e]), int(self._times[e])
        progress.late, made.window.open_from = int(self._late[e]), int(w.open_from[e])
        made.period_ms = None if w.period_ms[e] == UNKNOWN_PERIOD else int(w.period_ms[e])
        made.status_end_ms = int(self._status_end_ms[e])
        made.status = self._status(e)
        named, numbers = _names(models), dict[int, int]()
        for s in np.flatnonzero(w.known[e]).tolist():
            name = named[s // len(METRICS)], METRICS[s % len(METRICS)]
            number = made.roster.numbered(name, [])
            if number is None:
                raise AssertionError("a row has fewer series than a roster has room for")
            numbers[s] = number
            if w.base_ms[e, s] != NOWHERE:
                made.series[number].base = Smoothed(float(w.base[e, s]), int(w.base_ms[e, s]))
        first = made.window.grid.first_in_window(progress.watermark_ms)
        for slot, index in enumerate(w.held[e].tolist()):
            if index < first:
                continue
            pane = made.window.panes[index] = EnginePane()
            if w.cover_to[e, slot] > w.cover_from[e, slot]:
                pane.add_cover(int(w.cover_from[e, slot]), int(w.cover_to[e, slot]))
            for s, number in numbers.items():
                if w.count[e, s, slot]:
                    entry = Entry(int(w.count[e, s, slot]), float(w.sum_s[e, s, slot]), None, None, 0, 0, 1, b"")
                    pane.entries[number] = entry
                    made.entry_bytes += entry.size
        return made

    def _hand_over_apart(self, e: int, made: EngineAccumulator, models: list[bytes]) -> None:
        """Fill an accumulator with what is known of an engine even where it never spoke itself."""
        if self.outcomes is not None:
            own = int(self.windows.newest(np.array([e]))[0])
            outcomes = self._outcomes(len(models))
            made.outcomes.take_up(outcomes.rows(e, own, _names(models)[:MAX_MODELS]))
        if self._apart_ms[e] != NOWHERE:
            made.ledger = Ledger()
            made.ledger.apart_ms = int(self._apart_ms[e])

    def _reset(self, e: int) -> None:
        self.applied[e], self._times[e], self._status_end_ms[e] = -1, 0, -1
        self._health[e], self._late[e], self._apart_ms[e] = 0, 0, NOWHERE
        self._numbers[e] = np.nan

    def _finished(self, e: Ints, slots: Ints, there: Marks, covered: Ints) -> Floats:
        """Give finished requests per second, as `headrace.streams.core.completions` says; NaN where it says nothing."""
        w, grid = self.windows, self.windows.grid
        watermark, period = w.watermark_ms[e], w.period_ms[e]
        newest = -(-watermark // grid.pane_ms) - 1
        first = np.maximum(-(-(watermark - RECENT_MS) // grid.pane_ms), newest - grid.count + 1)
        panes = (newest - grid.count + 1)[:, None] + np.arange(grid.count)
        recent = there & (panes >= first[:, None])
        start = first * grid.pane_ms
        whole = (np.where(recent, covered, 0).sum(axis=1) >= COVERED * (watermark - start)) & (period > 0)
        periods = (watermark - start - 1) // np.maximum(period, 1) + 1
        found = np.full(len(e), np.nan)
        for metric in (Metric.TTFT, Metric.E2E):
            total, has = np.zeros(len(e), dtype=np.int64), np.zeros(len(e), dtype=np.bool_)
            for s in range(METRICS.index(metric), w.series, len(METRICS)):
                row = np.flatnonzero(w.known[e, s])
                counts = w.count[e[row][:, None], s, slots[row]]
                total[row] += np.where(recent[row], counts, 0).sum(axis=1)
                has[row] = True
            has &= whole
            found[has] = total[has] * 1000 / (periods[has] * period[has])
        return found

    def _status(self, e: int) -> EngineStatus:
        told = [None if math.isnan(value) else value for value in self._numbers[e].tolist()]
        desired, ready, reporting, running, waiting, used = told
        whole = [None if value is None else int(value) for value in (desired, ready, reporting)]
        return EngineStatus(HEALTHS[int(self._health[e])], whole[0], whole[1], whole[2], running, waiting, used)


def _names(models: list[bytes]) -> list[str]:
    """Give models' names; damaged bytes may be among them, and then are no regular engine's."""
    return [model.decode("utf-8", "replace") for model in models]


def _named(accumulator: EngineAccumulator) -> list[bytes]:
    """Give the models that an accumulator names, each once."""
    named = [series.model.encode() for series in accumulator.series]
    named += [model.encode() for _, model, *_ in accumulator.outcomes.rows()]
    return list(dict.fromkeys(named))


def _has_no_series(ledger: Ledger | None) -> bool:
    """Say whether a ledger knows no more than until when latencies were kept apart."""
    if ledger is None:
        return True
    none = Ledger()
    none.apart_ms = ledger.apart_ms
    return ledger.pack(()) == none.pack(())
