"""Puts a run from signals together: the folder's partitions, the folds, and what stood when the range began."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from headrace.replay.core.columnar.engines import ColumnarEngines
from headrace.replay.core.columnar.tail import Tail
from headrace.replay.core.history import Finding, HistoryError
from headrace.replay.core.merge import merged
from headrace.replay.core.play_signals import SETTLE_MS, Apart, Fold, SignalsView, play_signals
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.refold import Refold
from headrace.replay.core.variant import Variant
from headrace.replay.runs.verification import recorded_of
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.check_state import State
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, STATE_OF
from headrace.schemas.weights import Snapshot
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.glop import Glop
from headrace.streams.settings import StreamsSettings


def signals_played(
    folder: Path,
    variant: Variant,
    streams: StreamsSettings,
    registry: SchemaSource | None = None,
    lag_ms: int = 0,
    findings: list[Finding] | None = None,
) -> Iterator[PlayedTick]:
    """Play a variant over a folder's signals; what was found on the way goes into `findings` at the end.

    Raises:
        HistoryError: the folder holds no signals.
    """
    history = HistoryFolder(folder)
    roles = [role for role in STATE_OF if history.places(role)]
    if not roles:
        raise HistoryError("the range holds no signals, so there is nothing to fold anew")
    folds: dict[str, Fold] = {role: Refold(history.topics[role], streams, registry) for role in STATE_OF}
    columns = folds[SIGNALS_ENGINE] = ColumnarEngines(history.topics[SIGNALS_ENGINE], streams, registry)
    tail = Tail([history.read_batches(place) for place in history.places(SIGNALS_ENGINE)])
    apart = Apart(columns, tail, history.topics[SIGNALS_ENGINE].name)
    seen = SignalsView(history.topics, folds, StateFold(history.topics, registry), apart=apart)
    for role in STATE_OF:
        seen.begin(role, _standing(history, role, registry))
    places = [place for role in (SIGNALS_DEMAND, SIGNALS_NETWORK, FLEET, PROFILES) for place in history.places(role)]
    records = merged([history.read(place) for place in places])
    yield from play_signals(variant, records, seen, history.span, (_snapshot_before(history), lag_ms), Glop(threads=1))
    if findings is not None:
        findings += (*history.findings, *seen.findings())


def _snapshot_before(history: HistoryFolder) -> Snapshot | None:
    for tick in recorded_of(history).ticks(history.span):
        return tick.previous
    return None


def _standing(history: HistoryFolder, role: str, registry: SchemaSource | None) -> Mapping[bytes, State]:
    """Give the states that stood SETTLE_MS into the range, by key."""
    topic, until_ms = history.topics[STATE_OF[role]], history.span.from_ms + SETTLE_MS
    states: dict[bytes, State] = {}
    for place in history.places(topic.role):
        for record in history.read(place):
            if record.timestamp_ms >= until_ms:
                break
            if record.key is None:
                continue
            if record.value is None:
                states.pop(record.key, None)
                continue
            found = cast("State | Rejected", decode(topic.record, record.value, record.headers, registry))
            if not isinstance(found, Rejected):
                states[record.key] = found
    return states
