"""Kafka -> a folder of history that stands on its own: what is in the range, and what stood when it began.

    snapshots, decisions   from the last keyframe before the range to its end
    inputs of the solver   newest record of each key below the first tick's offsets, then all up to the last tick's;
                           read from as little before the range as is proved to be enough (`look_back`)
    signals, routed        of the range, by their timestamps

Bounded: one record a key of the input topics is held, and one block a file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from confluent_kafka import Consumer

from headrace.replay.core.history import Finding, Found, HistoryError, Span
from headrace.replay.sources.bounds import Base, Bounds
from headrace.replay.sources.folder import TRANSACTIONAL
from headrace.replay.sources.kafka_range import KafkaRange, NoTopicError
from headrace.replay.sources.look_back import Proof, Read
from headrace.replay.sources.manifest import FOREIGN, Manifest, Part, write_manifest
from headrace.replay.sources.writers import Writers
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.made_folder import empty_folder
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import (
    DECISIONS,
    FLEET,
    PROFILES,
    ROUTED,
    SHADOW,
    SNAPSHOTS,
    STATE_OF,
    Topic,
    TopicSettings,
    topic_table,
)
from headrace.schemas.weights import SnapshotCommit
from headrace.solver.core.inputs.state_view import INPUT_ROLES

EXPORTED = (SNAPSHOTS, SHADOW, DECISIONS, *INPUT_ROLES, *STATE_OF, ROUTED)
"""In this order: the snapshots say how far the inputs are needed."""
LOOK_BACK_MS = (600_000, 7_200_000, None)
"""How far before the range a keyframe is looked for, in turn; None is the log's beginning."""
SLACK_MS = 60_000
"""Records this much past the range's end are still looked at: clocks of producers differ."""
TELL_EVERY = 10_000
MAX_TOLD = 3

Told = Callable[[str, int], None]
"""Told which topic is being read, and how many of its records were taken so far."""


class Exporter:
    """Writes one folder. Use once."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicSettings,
        span: Span,
        folder: Path,
        told: Told,
        foreign: Sequence[str] = (),
    ) -> None:
        self._kafka = kafka
        self._foreign = tuple(dict.fromkeys(foreign))
        self._settings = topics
        self._topics = topic_table(topics)
        self._span = span
        self._folder = folder
        self._told = told
        self._client = Consumer(consumer_options(kafka))
        self._bounds = Bounds(span)
        self._proof = Proof(self._bounds)
        self._ticks = 0
        self._parts: list[Part] = []
        self._findings: list[Finding] = []

    def export(self) -> Manifest:
        """Write every topic that replay reads; one that is not there is a finding.

        Raises:
            InvalidInputError: the folder holds something already, or cannot be written.
            HistoryError: nothing lies in the range, or the broker fell silent.
        """
        existed = self._folder.exists()
        empty_folder(self._folder, "--out")
        try:
            return self._exported()
        except BaseException:
            # Without a manifest it is no history, and would only stand in the way of the next attempt.
            for made in self._folder.iterdir():
                rmtree(made, ignore_errors=True)
            if not existed:
                with suppress(OSError):
                    self._folder.rmdir()
            raise
        finally:
            self._client.close()

    def _exported(self) -> Manifest:
        for role in EXPORTED:
            self._one(self._topics[role])
        for name in self._foreign:
            self._one(foreign_topic(name))
        if not self._bounds.ticks and not any(part.records for part in self._parts if _is_told(part)):
            raise HistoryError(f"nothing was recorded in this range: neither a signal nor a snapshot; {self._why()}")
        if not self._bounds.ticks:
            said = "no snapshot was published in the range: there is nothing to verify"
            self._findings.append(Finding(Found.EMPTY, self._topics[SNAPSHOTS].name, None, 0, said))
        manifest = Manifest(self._span, self._ticks, self._settings, tuple(self._parts), tuple(self._findings))
        write_manifest(self._folder, manifest)
        return manifest

    def _why(self) -> str:
        """Say why a range may hold nothing, by what was found on the way."""
        gone = [str(each) for each in self._findings if each.found is Found.EXPIRED]
        if gone:
            return "; ".join(gone[:MAX_TOLD])
        missing = [each.topic for each in self._findings if each.found is Found.EMPTY]
        if missing:
            return f"there is no topic {', '.join(missing[:MAX_TOLD])}: is topics.prefix {self._settings.prefix!r}?"
        return "is it in UTC?"

    def _one(self, topic: Topic) -> None:
        try:
            self._topic(topic)
        except NoTopicError as error:
            self._findings.append(Finding(Found.EMPTY, topic.name, None, 0, str(error)))

    def _topic(self, topic: Topic) -> None:
        if topic.role in INPUT_ROLES:
            self._write(topic, self._input(topic, INPUT_ROLES.index(topic.role)))
        elif topic.role == DECISIONS or topic.role not in TRANSACTIONAL:
            look_back_ms = LOOK_BACK_MS[-2] or 0
            decided = topic.role == DECISIONS
            records = self._ranged(topic, self._span.from_ms - (look_back_ms if decided else 0))
            self._write(topic, self._proof.followed(records) if decided else records)
        else:
            self._snapshots(topic)

    def _snapshots(self, topic: Topic) -> None:
        """Write a snapshot log from a keyframe on, going back as far as it takes."""
        parts, findings, bounds = len(self._parts), len(self._findings), self._bounds
        watch = _Watch(bounds, live=True)
        for look_back_ms in LOOK_BACK_MS:
            del self._parts[parts:], self._findings[findings:]
            watch = _Watch(bounds, live=topic.role == SNAPSHOTS)
            from_ms = None if look_back_ms is None else self._span.from_ms - look_back_ms
            self._write(topic, watch.followed(self._ranged(topic, from_ms)))
            if topic.role == SNAPSHOTS:
                self._ticks = watch.ticks
            if watch.is_whole or not watch.ticks:
                break
        if watch.ticks and not watch.is_whole:
            said = "no keyframe before the range: its first ticks cannot be verified"
            self._findings.append(Finding(Found.NO_KEYFRAME, topic.name, 0, 0, said))

    def _input(self, topic: Topic, number: int) -> Iterator[RawRecord]:
        base = Base(self._bounds, number)
        # What operators own is little, and may be as old as the fleet.
        from_ms = (
            None if topic.role in (FLEET, PROFILES) else self._proof.begin_ms(topic.name, number, self._read(topic))
        )
        reader = KafkaRange(self._kafka, topic.name, self._client)
        for record in reader.read(from_ms, is_past=lambda each: self._bounds.is_past(number, each)):
            yield from base.followed(record)
        yield from base.rest()

    def _read(self, topic: Topic) -> Read:
        return lambda from_ms, is_past: KafkaRange(self._kafka, topic.name, self._client).read(from_ms, is_past)

    def _ranged(self, topic: Topic, from_ms: int | None) -> Iterator[RawRecord]:
        end_ms = self._span.to_ms
        reader = KafkaRange(self._kafka, topic.name, self._client)
        seen: set[int] = set()
        for record in reader.read(from_ms, lambda each: each.timestamp_ms >= end_ms + SLACK_MS):
            if record.partition not in seen:
                seen.add(record.partition)
                self._look_for_expired(topic, record, reader)
            if (from_ms or 0) <= record.timestamp_ms < end_ms:
                yield record
        for partition, log in sorted(reader.logs.items()):
            if partition not in seen and 0 < log.first_offset == log.next_offset:
                said = f"the log holds nothing any more: offsets below {log.next_offset} expired"
                self._findings.append(Finding(Found.EXPIRED, topic.name, partition, log.first_offset, said))

    def _look_for_expired(self, topic: Topic, record: RawRecord, reader: KafkaRange) -> None:
        log, late_ms = reader.logs.get(record.partition), record.timestamp_ms - self._span.from_ms
        if log is not None and 0 < log.first_offset == record.offset and late_ms > 0:
            said = (
                f"the log begins at offset {record.offset}, {late_ms / 1000:.1f} s into the range: older ones expired"
            )
            self._findings.append(Finding(Found.EXPIRED, topic.name, record.partition, log.first_offset, said))

    def _write(self, topic: Topic, records: Iterable[RawRecord]) -> None:
        writers = Writers(self._folder, topic)
        for count, record in enumerate(records):
            if count % TELL_EVERY == 0:
                self._told(topic.name, count)
            writers.write(record)
        self._parts += writers.close()
        # Below the first tick only the newest record of each key is taken, which is no hole.
        self._findings += [each for each in writers.findings() if each.found is not Found.COMPACTED]


class _Watch:
    """Follows a snapshot log: whether it is whole before the range begins, and how far its ticks had read."""

    def __init__(self, bounds: Bounds, *, live: bool) -> None:
        self._bounds = bounds
        self._live = live
        self._assembler = SnapshotAssembler()
        self.is_whole = False
        self.ticks = 0

    def followed(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        for record in records:
            self._offer(record)
            yield record

    def _offer(self, record: RawRecord) -> None:
        if not self.ticks:
            outcome = self._assembler.offer(record)
            if isinstance(outcome, Assembled):
                commit = outcome.snapshot.commit
                before = commit.tick_ms < self._bounds.span.from_ms
                self.is_whole = self.is_whole or before or commit.version == 1
        if record.key == COMMIT_KEY:
            decoded: SnapshotCommit | Rejected = decode(SnapshotCommit, record.value, record.headers)
            if not isinstance(decoded, Rejected) and decoded.tick_ms in self._bounds.span:
                self._bounds.add(decoded, live=self._live)
                self.ticks += 1


def foreign_topic(name: str) -> Topic:
    """Give a topic of the team's own as a topic of history."""
    return Topic(FOREIGN + name, name, "", bytes, 1, 1, {"cleanup.policy": "delete"})


def _is_told(part: Part) -> bool:
    return part.role in STATE_OF or part.role.startswith(FOREIGN)


def counts(parts: Sequence[Part]) -> dict[str, int]:
    """Give how many records each role has."""
    found: dict[str, int] = {}
    for part in parts:
        found[part.role] = found.get(part.role, 0) + part.records
    return found
