"""History from a folder that `headrace export` wrote: one Avro file a partition, and a manifest."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.replay.core.columnar.batch import Batch
from headrace.replay.core.continuity import Continuity
from headrace.replay.core.history import DamagedError, Finding, Place, Span
from headrace.replay.sources.container import read_batches, read_container
from headrace.replay.sources.container_end import Ends, read_end
from headrace.replay.sources.manifest import FOREIGN, Manifest, Part, read_manifest
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DECISIONS, SHADOW, SNAPSHOTS, Topic, topic_table

TRANSACTIONAL = (SNAPSHOTS, DECISIONS, SHADOW)
"""Roles whose records are written in transactions; each ends with an offset of its own."""


class HistoryFolder:
    """A folder of exported history, read as often as wanted; `headrace.replay.core.history.History`.

    Raises:
        HistoryError: the folder holds no manifest.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._manifest = read_manifest(folder)
        self._topics = topic_table(self._manifest.topics)
        self._parts: dict[Place, Part] = {
            (self._name(part.role), part.partition): part for part in self._manifest.parts
        }
        self._watched: dict[Place, Continuity] = {}

    @property
    def span(self) -> Span:
        """The range that was asked for."""
        return self._manifest.span

    @property
    def ticks(self) -> int:
        """How many snapshots were published in the range."""
        return self._manifest.ticks

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by role, as they were named."""
        return self._topics

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found at export, and what was found in the files that were read since."""
        read = [finding for _, watched in sorted(self._watched.items()) for finding in watched.findings()]
        return tuple(dict.fromkeys((*self._manifest.findings, *read)))

    @property
    def manifest(self) -> Manifest:
        """What the folder says that it holds."""
        return self._manifest

    @property
    def foreign(self) -> tuple[str, ...]:
        """The topics of the team's own that it holds, by their full names."""
        roles = {part.role for part in self._manifest.parts if part.role.startswith(FOREIGN)}
        return tuple(sorted(role.removeprefix(FOREIGN) for role in roles))

    def see_files(self) -> None:
        """See that every file holds what was written into it, those that nobody is going to read among them.

        Raises:
            DamagedError: some are not there, cut short or damaged; all of them are named.
        """
        problems = [problem for part in self._manifest.parts if (problem := _problem(part, self._folder))]
        if problems:
            raise DamagedError("; ".join(problems))

    def places(self, role: str) -> tuple[Place, ...]:
        """Give the partitions of a role that hold records."""
        return tuple(sorted(place for place, part in self._parts.items() if part.role == role and part.records))

    def read(self, place: Place) -> Iterator[RawRecord]:
        """Give a partition's records, each offset once."""
        part, watched = self._parts[place], self._watch(place)
        return watched.followed(_whole(read_container(self._folder / part.file, place), part, self._folder))

    def read_batches(self, place: Place) -> Iterator[Batch]:
        """Give a partition's records, each offset once, many at a time."""
        part, watched = self._parts[place], self._watch(place)
        count = 0
        for batch in read_batches(self._folder / part.file, place):
            count += len(batch)
            yield watched.followed_batch(batch)
        _see_whole(count, part, self._folder)

    def _watch(self, place: Place) -> Continuity:
        part = self._parts[place]
        compacted = not part.role.startswith(FOREIGN) and self._topics[part.role].compacted
        watched = Continuity(place, compacted=compacted, transactional=part.role in TRANSACTIONAL)
        self._watched[place] = watched
        return watched

    def _name(self, role: str) -> str:
        return role.removeprefix(FOREIGN) if role.startswith(FOREIGN) else self._topics[role].name


def _whole(records: Iterator[RawRecord], part: Part, folder: Path) -> Iterator[RawRecord]:
    """Give a file's records; a file that was cut off at a block ends like a whole one, and is none."""
    count = 0
    for record in records:
        count += 1
        yield record
    _see_whole(count, part, folder)


def _see_whole(count: int, part: Part, folder: Path) -> None:
    if count < part.records:
        raise DamagedError(_cut(folder / part.file, count, part))


def _problem(part: Part, folder: Path) -> str | None:
    path = folder / part.file
    try:
        end = read_end(path)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    if end.ends is Ends.DAMAGED:
        return f"{path} is damaged after {end.records} of {part.records} records: export again"
    return _cut(path, end.records, part) if end.ends is Ends.CUT or end.records < part.records else None


def _cut(path: Path, count: int, part: Part) -> str:
    return f"{path} is cut short: {count} of its {part.records} records are whole; export again"
