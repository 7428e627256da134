"""The streams without Kafka: the same admission and the same folds over records from anywhere.

Used by tests, to hold the live state against, and by replay. The state of a key is byte for byte what a live worker
writes for the same signals at the same offsets, however often that worker was killed.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from headrace.schemas.check_state import State
from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import STATE_OF, TopicSettings, topic_table
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.settings import StreamsSettings

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class OfflineRun:
    """What an off-line run came to: the last state of every key, as bytes and as records, and what was refused."""

    encoded: dict[bytes, bytes]
    states: dict[bytes, State]
    rejected: tuple[DeadLetter, ...]


def run_offline(
    records: Iterable[RawRecord],
    settings: StreamsSettings,
    topics: TopicSettings,
    fleet: Container[bytes] | None = None,
) -> OfflineRun:
    """Fold records of the signals topics; each partition's records come in offset order, partitions in any.

    Args:
        records: of any topics; those of other topics are passed over.
        settings: of the fold.
        topics: names and partitions.
        fleet: keys of the known engines; None = all are known.
    """
    table = topic_table(topics)
    folds = {table[role].name: KeyedFold(KINDS[role], settings, table[role].partitions) for role in STATE_OF}
    encoded: dict[str, dict[bytes, bytes]] = {name: {} for name in folds}
    rejected: list[DeadLetter] = []
    waiting: dict[str, list[RawRecord]] = {name: [] for name in folds}

    def fold(name: str) -> None:
        folded = folds[name].fold(waiting[name], encoded[name].get, fleet)
        encoded[name].update(folded.states)
        rejected.extend(folded.rejected)
        waiting[name].clear()

    for record in records:
        if record.topic not in folds:
            continue
        waiting[record.topic].append(record)
        if len(waiting[record.topic]) >= BATCH:
            fold(record.topic)
    for name in folds:
        fold(name)
    states = {key: folds[name].read(value) for name, part in encoded.items() for key, value in part.items()}
    return OfflineRun({key: value for part in encoded.values() for key, value in part.items()}, states, tuple(rejected))
