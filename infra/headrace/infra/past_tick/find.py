"""Finds a tick in the logs of snapshots and decisions, and reads the input topics up to where that tick had read them.

    snapshots, decisions   from a keyframe before it, further back until there is one
    fleet, profiles, state.*   from the beginning to the tick's own offsets: what the solver saw, proved by digest

Failure mode: what history no longer holds is an error that says what is held.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial

from headrace.infra.configuration.config import Config
from headrace.infra.kafka_edge import require_topics
from headrace.infra.past_tick.found import FoundTick
from headrace.infra.past_tick.wanted import Wanted, held_words
from headrace.replay.core.history import Span
from headrace.replay.core.recorded import Recorded, RecordedTick
from headrace.replay.sources.kafka_range import KafkaRange
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import HeadraceError
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DECISIONS, SNAPSHOTS, Topic, topic_table
from headrace.schemas.weights import InputOffsets, SnapshotCommit
from headrace.solver.core.effective import settings_of
from headrace.solver.core.inputs.digests import LogDigests
from headrace.solver.core.inputs.state_view import INPUT_ROLES, StateFold, StateView

MARGIN_MS = 30_000
"""How much later than its tick a record may be dated."""
WIDER = 4
"""By how much further back is looked where no keyframe was found."""
MAX_HISTORY = 10_000
"""Ticks kept of the time before."""
FOR_EVER = Span(0, 1 << 62)


class NoTickError(HeadraceError):
    """History holds no such tick; the message says which it holds."""


def find_tick(
    config: Config, wanted: Wanted, now_ms: int, *, registry: SchemaSource | None = None, history_ms: int = 0
) -> tuple[FoundTick, tuple[RecordedTick, ...]]:
    """Give a tick, and those of the last `history_ms` before it, it being the last of them.

    Raises:
        UnreachableError, MissingTopicError: the broker does not answer, or a topic is not there.
        NoTickError: history holds no such tick.
    """
    table = topic_table(config.topics)
    require_topics(config.kafka, [table[role].name for role in (SNAPSHOTS, DECISIONS, *INPUT_ROLES)])
    ticks = _found(config, table, wanted, now_ms, history_ms)
    recorded = ticks[-1]
    view, proved = _inputs(config, table, recorded, registry)
    settings = config.solver if recorded.settings_text is None else settings_of(recorded.settings_text)
    return FoundTick(recorded, view, settings, proved), ticks


def _found(
    config: Config, table: Mapping[str, Topic], wanted: Wanted, now_ms: int, history_ms: int
) -> tuple[RecordedTick, ...]:
    end_ms = now_ms if wanted.at_ms is None else min(wanted.at_ms, now_ms)
    back_ms = config.solver.keyframe_ms + history_ms + MARGIN_MS
    while True:
        from_ms = max(0, end_ms - back_ms)
        kept: deque[RecordedTick] = deque(maxlen=MAX_HISTORY)
        first = 0
        for tick in _ticks(config, table, from_ms, end_ms):
            commit = tick.snapshot.commit
            first = first or commit.version
            if wanted.is_past(commit):
                break
            kept.append(tick)
            while len(kept) > 1 and kept[0].snapshot.commit.tick_ms < commit.tick_ms - history_ms:
                kept.popleft()
        if kept and wanted.is_met(kept[-1].snapshot.commit):
            return tuple(kept)
        if from_ms == 0 or (wanted.version is not None and first <= wanted.version):
            held = held_words(*_held(config, table, now_ms))
            raise NoTickError(f"{table[SNAPSHOTS].name} has no snapshot of {wanted.words}: {held}")
        back_ms *= WIDER


def _held(config: Config, table: Mapping[str, Topic], now_ms: int) -> tuple[SnapshotCommit | None, ...]:
    """Give the first and the last tick that history holds whole; None where there is none."""
    first = next(iter(_ticks(config, table, 0, now_ms)), None)
    if first is None:
        return None, None
    recent = _ticks(config, table, max(0, now_ms - config.solver.keyframe_ms - MARGIN_MS), now_ms)
    last = deque(recent, maxlen=1) or (first,)
    return first.snapshot.commit, last[0].snapshot.commit


def _ticks(config: Config, table: Mapping[str, Topic], from_ms: int, end_ms: int) -> Iterator[RecordedTick]:
    def is_past(record: RawRecord) -> bool:
        return record.timestamp_ms > end_ms + MARGIN_MS

    snapshots, decisions = (
        KafkaRange(config.kafka, table[role].name).read(from_ms, is_past) for role in (SNAPSHOTS, DECISIONS)
    )
    return Recorded(snapshots, decisions, table[SNAPSHOTS].name).ticks(FOR_EVER)


def _inputs(
    config: Config, table: Mapping[str, Topic], tick: RecordedTick, registry: SchemaSource | None
) -> tuple[StateView, bool]:
    commit, record = tick.snapshot.commit, tick.record
    if len(commit.inputs) != len(INPUT_ROLES):
        raise NoTickError(f"version {commit.version} names {len(commit.inputs)} input topics, not {len(INPUT_ROLES)}")
    fold, digests = StateFold(table, registry), LogDigests()
    # Under today's names: a topic may have been called otherwise.
    read = [InputOffsets(table[r].name, each.offsets) for r, each in zip(INPUT_ROLES, commit.inputs, strict=True)]
    for each in read:
        for found in KafkaRange(config.kafka, each.topic).read(is_past=partial(_is_past, each.offsets)):
            fold.offer(found)
            digests.offer(found)
    ours = [each.digests for each in digests.digests(read)]
    recorded = None if record is None else record.input_digests
    proved = recorded is not None and ours == [each.digests for each in recorded]
    return fold.view(commit.inputs), proved


def _is_past(offsets: tuple[int, ...], record: RawRecord) -> bool:
    return record.partition >= len(offsets) or record.offset >= offsets[record.partition]
