"""The files of one topic's partitions, made as its records come; each offset is written once."""

from pathlib import Path

from headrace.replay.core.continuity import Continuity
from headrace.replay.core.history import Finding, Place
from headrace.replay.sources.container import ContainerWriter
from headrace.replay.sources.folder import TRANSACTIONAL
from headrace.replay.sources.manifest import Part
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import Topic


class Writers:
    """Writes one topic into a folder."""

    def __init__(self, folder: Path, topic: Topic) -> None:
        self._folder = folder
        self._topic = topic
        self._open: dict[int, ContainerWriter] = {}
        self._continuity: dict[int, Continuity] = {}
        self._offsets: dict[int, tuple[int, int]] = {}

    def write(self, record: RawRecord) -> None:
        """Add a record to its partition's file."""
        place: Place = self._topic.name, record.partition
        if record.partition not in self._open:
            path = self._folder / self._file(record.partition)
            self._open[record.partition] = ContainerWriter(path, place)
            self._continuity[record.partition] = Continuity(
                place, compacted=self._topic.compacted, transactional=self._topic.role in TRANSACTIONAL
            )
        for each in self._continuity[record.partition].followed((record,)):
            self._open[record.partition].write(each)
            first, _ = self._offsets.get(record.partition, (each.offset, 0))
            self._offsets[record.partition] = first, each.offset + 1

    def close(self) -> list[Part]:
        """Finish the files and say what they hold."""
        for writer in self._open.values():
            writer.close()
        return [
            Part(self._topic.role, number, self._file(number), writer.count, *self._offsets[number])
            for number, writer in sorted(self._open.items())
        ]

    def findings(self) -> list[Finding]:
        """Give what was odd about the records."""
        return [each for _, watched in sorted(self._continuity.items()) for each in watched.findings()]

    def _file(self, partition: int) -> str:
        return f"{self._topic.role}/{partition}.avro"
