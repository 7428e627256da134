"""The fold of a folder's signals up to each tick, of all of its partitions or of some: what one process folds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from headrace.replay.core.columnar.engines import ColumnarEngines
from headrace.replay.core.columnar.tail import Tail
from headrace.replay.core.history import Finding
from headrace.replay.core.merge import merged
from headrace.replay.core.play_signals import SETTLE_MS
from headrace.replay.core.refold import Refold
from headrace.replay.core.signals_fold import Apart, Fold, Seen, SignalsFold, seen_at
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.check_state import State
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.topics import FLEET, PROFILES, SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, STATE_OF
from headrace.solver.core.inputs.state_view import StateFold
from headrace.streams.settings import StreamsSettings


@dataclass(frozen=True, slots=True)
class Folding:
    """What to fold: instants, ms, up to each of which what is new is given; and which part, of how many.

    A part has every so manieth partition of the engines' signals; the first has all other signals, too.
    """

    folder: Path
    streams: StreamsSettings
    registry: SchemaSource | None
    instants: range
    part: tuple[int, int] = (0, 1)


def fold_signals(folding: Folding, findings: list[Finding]) -> Iterator[Seen]:
    """Give what is seen at each instant; what was found on the way goes into `findings` at the end."""
    (number, of), registry = folding.part, folding.registry
    history = HistoryFolder(folding.folder)
    engines = history.topics[SIGNALS_ENGINE]
    columns = ColumnarEngines(engines, folding.streams, registry)
    tail = Tail([history.read_batches(place) for place in history.places(SIGNALS_ENGINE)[number::of]])
    folds: dict[str, Fold] = {SIGNALS_ENGINE: columns}
    if number == 0:
        folds |= {
            role: Refold(history.topics[role], folding.streams, registry) for role in STATE_OF if role not in folds
        }
    for role, fold in folds.items():
        fold.begin(standing(history, role, registry))
    known, apart = StateFold(history.topics, registry), Apart(columns, tail, engines.name)
    signals = SignalsFold(history.topics, folds, known, apart)
    roles = [role for role in (SIGNALS_DEMAND, SIGNALS_NETWORK) if role in folds]
    places = [place for role in (*roles, FLEET, PROFILES) for place in history.places(role)]
    yield from seen_at(folding.instants, merged([history.read(place) for place in places]), signals)
    findings += (*history.findings, *signals.findings())


def standing(history: HistoryFolder, role: str, registry: SchemaSource | None) -> Mapping[bytes, State]:
    """Give the states that stood SETTLE_MS into the range, by key; `role` of the signals topic."""
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
