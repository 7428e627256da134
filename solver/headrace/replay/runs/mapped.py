"""A folder of history as it would have been with another mapping: the team's own records, translated anew.

    foreign records ──► the bridge's translator ──► readings ──► signals ┐
    signals of our own, and those of other sources ──────────────────────┴─► a folder of signals without states

Each signal gets the time of the newest record that it holds, as if the bridge had been there at once, and an offset of
its own. States that were recorded are of the old mapping, so none are taken up: a counter's first reading is where it
begins. Records that the mapping cannot use are a finding; a live bridge sends them to the dead letters.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shutil import copyfile

from headrace.replay.core.history import Finding, Found, HistoryError, Place
from headrace.replay.core.merge import merged
from headrace.replay.sources.folder import HistoryFolder
from headrace.replay.sources.manifest import FOREIGN, Manifest, Part, write_manifest
from headrace.replay.sources.writers import Writers
from headrace.schemas.check_signals import Signal
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, STATE_OF
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.partitioner import partition_of

SOURCE = "replay-bridge"
BATCH_MS = 50
MAX_BATCH = 500
"""Records of a partition that are translated before what they gave is told, as by a live bridge."""
_KINDS: Mapping[str, type[Signal]] = {
    SIGNALS_ENGINE: EngineSignals,
    SIGNALS_DEMAND: Demand,
    SIGNALS_NETWORK: NetworkProbe,
}


def mapped_folder(
    folder: Path, out: Path, translators: Mapping[str, Translator], registry: SchemaSource | None = None
) -> Path:
    """Write a folder with the signals that these mappings make of the team's own topics; gives `out`.

    Args:
        folder: history that holds those topics.
        out: an empty folder.
        translators: by full name of the topic.
        registry: looks up schemas of Confluent framing.

    Raises:
        HistoryError: the folder does not hold such a topic.
    """
    history = HistoryFolder(folder)
    missing = [topic for topic in sorted(translators) if topic not in history.foreign]
    if missing:
        held = ", ".join(history.foreign) or "none"
        raise HistoryError(
            f"{folder} does not hold {', '.join(missing)}; of the team's own topics it holds {held}: "
            "`headrace export --topic NAME` takes one in"
        )
    mapping = _Mapping(history, translators, registry)
    writers = {role: Writers(out, history.topics[role]) for role in _KINDS}
    offsets: dict[Place, int] = {}
    for role, at_ms, key, value in mapping.signals():
        topic = history.topics[role]
        place = topic.name, partition_of(key, topic.partitions)
        offset = offsets[place] = offsets.get(place, -1) + 1
        writers[role].write(RawRecord(*place, offset, at_ms, key, value))
    parts = [part for each in writers.values() for part in each.close()]
    parts += _kept(folder, out, history.manifest.parts)
    findings = (*history.findings, *mapping.findings())
    write_manifest(out, Manifest(history.span, 0, history.manifest.topics, tuple(parts), findings))
    return out


class _Mapping:
    """Translates; what waits to be packed is one batch a partition."""

    def __init__(
        self, history: HistoryFolder, translators: Mapping[str, Translator], registry: SchemaSource | None
    ) -> None:
        self._registry = registry
        self._history = history
        self._translators = translators
        self._roles: dict[type, str] = {kind: role for role, kind in _KINDS.items()}
        self._packs: dict[Place, tuple[Packs, int, int]] = {}
        self._refused: dict[Place, tuple[int, str]] = {}

    def signals(self) -> Iterator[tuple[str, int, bytes, bytes]]:
        """Give role, time, key and value of each signal."""
        roles = {self._history.topics[role].name: role for role in _KINDS}
        for record in merged(self._partitions()):
            role = roles.get(record.topic)
            if role is None:
                yield from self._foreign(record)
            elif record.key is not None and record.value is not None and not self._is_replaced(role, record):
                yield from self._due(record.timestamp_ms)
                yield role, record.timestamp_ms, record.key, record.value
        yield from self._due(None)

    def findings(self) -> tuple[Finding, ...]:
        """Give what the mappings could not use."""
        return tuple(
            Finding(Found.UNREADABLE, *place, count, f"the mapping cannot use {count} records or readings: {sentence}")
            for place, (count, sentence) in sorted(self._refused.items())
        )

    def _partitions(self) -> Iterator[Iterable[RawRecord]]:
        for role in (*_KINDS, *(FOREIGN + topic for topic in sorted(self._translators))):
            for place in self._history.places(role):
                yield self._history.read(place)

    def _is_replaced(self, role: str, record: RawRecord) -> bool:
        """Say whether a recorded signal was made of a topic that is translated anew."""
        signal = decode(_KINDS[role], record.value, record.headers, self._registry)
        if isinstance(signal, Rejected | NetworkProbe) or signal.lineage is None:
            return False
        return signal.lineage.topic in self._translators

    def _foreign(self, record: RawRecord) -> Iterator[tuple[str, int, bytes, bytes]]:
        yield from self._due(record.timestamp_ms)
        place, translator = (record.topic, record.partition), self._translators[record.topic]
        if place not in self._packs:
            packs = Packs(*place, translator.mapping.hash, SOURCE)
            self._packs[place] = packs, record.timestamp_ms, 0
        packs, begun_ms, count = self._packs[place]
        self._packs[place] = packs, begun_ms, count + 1
        translated = translator.translate(record, record.timestamp_ms)
        packs.add(translated)
        if translated.rejects:
            refused, sentence = self._refused.get(place, (0, ""))
            first = translated.rejects[0]
            said = sentence or f"from offset {record.offset}: {first.reason}: {first.detail}"
            self._refused[place] = refused + len(translated.rejects), said
        if count + 1 >= MAX_BATCH:
            yield from self._told(place, record.timestamp_ms)

    def _due(self, now_ms: int | None) -> Iterator[tuple[str, int, bytes, bytes]]:
        """Give what has waited as long as a live bridge waits; all of it where time has ended."""
        for place, (_, begun_ms, _) in sorted(self._packs.items()):
            if now_ms is None or now_ms - begun_ms >= BATCH_MS:
                yield from self._told(place, begun_ms + BATCH_MS)

    def _told(self, place: Place, at_ms: int) -> Iterator[tuple[str, int, bytes, bytes]]:
        packs, _, _ = self._packs.pop(place)
        for signal in packs.take():
            yield self._roles[signal.kind], at_ms, signal.key, signal.value


def _kept(folder: Path, out: Path, parts: Iterable[Part]) -> Iterator[Part]:
    """Copy what no mapping changes; states and their signals are made anew."""
    made = {*STATE_OF, *STATE_OF.values()}
    for part in parts:
        if part.role not in made and not part.role.startswith(FOREIGN):
            (out / part.file).parent.mkdir(parents=True, exist_ok=True)
            copyfile(folder / part.file, out / part.file)
            yield part
