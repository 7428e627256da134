"""One member of the bridge's consumer group: batches of source records to signals, delivered, then committed.

at least once: what was delivered and not committed comes again, with the same lineage, and the fold drops it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.log import Log
from headrace.schemas.metric_table import Counts, NoCounts
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DEAD_LETTERS, STATE_OF, Topic
from headrace.streams.bridge.metrics import count_tally
from headrace.streams.bridge.outbox import Outbox, give_up_after
from headrace.streams.bridge.settings import BridgeSettings
from headrace.streams.bridge.starting_points import starting_points, told_beginnings
from headrace.streams.bridge.tally import Tally
from headrace.streams.core.admission import dead_letter
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translated, Translator

STAGE: Final = "bridge"
MAX_PARTIAL_LETTERS: Final = 100
"""Dead letters a report period of records that were usable in part: a name that never fits must not fill the topic."""
MAX_POLL_MS: Final = 3_600_000
"""A broker that takes nothing is waited for inside one batch; the group must not think that this member is dead."""


@dataclass(frozen=True, slots=True)
class Source:
    """One topic, ready to be read."""

    name: str
    topic: str
    translator: Translator


class Bridge:
    """Reads sources, publishes signals."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Mapping[str, Topic],
        settings: BridgeSettings,
        sources: Iterable[Source],
        log: Log,
        counts: Counts | None = None,
    ) -> None:
        self._settings = settings
        self._counts = counts or NoCounts()
        self._sources = {source.topic: source for source in sources}
        self._log = log
        self._topics = {topics[role].record: topics[role].name for role in STATE_OF}
        self._letters = topics[DEAD_LETTERS].name
        self._source_name = f"{kafka.client_id}-bridge"
        options = {
            "auto.offset.reset": settings.begin,
            "max.poll.interval.ms": MAX_POLL_MS,
            "session.timeout.ms": settings.session_timeout_ms,
        }
        self._consumer = Consumer(consumer_options(kafka, settings.group_id, **options))
        self._outbox = Outbox(kafka)
        self._is_embedded = kafka.broker == "embedded"
        self._tally = Tally()
        self._is_given_up: Callable[[], bool] = lambda: False
        self._uncommitted: dict[tuple[str, int], int] = {}

    def run(self, stopped: Callable[[], bool]) -> None:
        """Read until stopped; what is under way is delivered and committed before it ends, within a bound.

        Raises:
            UndeliveredError: the broker refused a record for good.
            KafkaException: the consumer failed for good.
        """
        self._is_given_up = give_up_after(self._settings.stop_wait_ms / 1000, stopped)
        report_s = time.monotonic() + self._settings.report_ms / 1000
        self._consumer.subscribe(list(self._sources), on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not stopped():
                self._batch(self._consumer.consume(self._settings.batch_max, self._settings.batch_wait_ms / 1000))
                if time.monotonic() >= report_s:
                    self._report()
                    report_s = time.monotonic() + self._settings.report_ms / 1000
        finally:
            self._report()
            self._consumer.close()
            self._outbox.close()

    def _batch(self, messages: list[Message]) -> None:
        packs: dict[tuple[str, int], Packs] = {}
        now_ms = time.time_ns() // 1_000_000
        for message in messages:
            error = message.error()
            if error is not None:
                self._fault(error)
                continue
            record = raw_record(message)
            source = self._sources[record.topic]
            translated = source.translator.translate(record, now_ms)
            self._tally.add(translated)
            at = record.topic, record.partition
            if at not in packs:
                packs[at] = Packs(record.topic, record.partition, source.translator.mapping.hash, self._source_name)
            packs[at].add(translated)
            if translated.rejects:
                self._refuse(record, translated)
            self._uncommitted[at] = record.offset + 1
        for pack in packs.values():
            for signal in pack.take():
                self._outbox.put(self._topics[signal.kind], signal.key, signal.value)
                self._tally.published += 1
        if self._uncommitted and self._outbox.delivered(self._is_given_up):
            self._commit()

    def _refuse(self, record: RawRecord, translated: Translated) -> None:
        if not translated.is_unusable and self._tally.letters >= MAX_PARTIAL_LETTERS:
            self._tally.letters_left_out += 1
            return
        first = translated.rejects[0]
        detail = "; ".join(dict.fromkeys(each.detail for each in translated.rejects[:10]))
        more = f"; and {len(translated.rejects) - 10} more" if len(translated.rejects) > 10 else ""
        letter = replace(dead_letter(record, Rejected(first.reason, detail + more)), stage=STAGE)
        self._outbox.put(self._letters, letter.key, encode(letter))
        self._tally.letters += 1

    def _commit(self) -> None:
        done = [TopicPartition(topic, partition, offset) for (topic, partition), offset in self._uncommitted.items()]
        self._uncommitted.clear()
        try:
            self._consumer.commit(offsets=done, asynchronous=False)
        except KafkaException as error:
            # A partition that was taken away meanwhile is its new owner's; the rest is committed with the next batch.
            self._counts.add("commit_failures_total", 1)
            self._log.warning("offsets not committed; what they stand for may come again", reason=str(error))

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not self._is_embedded:
            # That broker's watermarks are wrong; whatever it holds, it forgets with its end.
            begin = starting_points(consumer, partitions, self._settings.begin)
            consumer.assign(begin.partitions)
            for sentence in told_beginnings(begin.left, self._settings.group_id):
                self._log.info(sentence)
        self._log.info("partitions given", partitions=sorted(f"{each.topic}/{each.partition}" for each in partitions))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        # Called inside `consume`, between two batches: nothing is under way.
        self._log.info("partitions taken", partitions=sorted(f"{each.topic}/{each.partition}" for each in partitions))

    def _fault(self, error: Any) -> None:  # noqa: ANN401 - KafkaError, whose stubs are partial
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
            return
        if error.fatal() or error.code() in (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
        ):
            raise KafkaException(error)
        self._log.warning("the consumer reports", reason=error.str())

    def _report(self) -> None:
        tally, self._tally = self._tally, Tally()
        count_tally(self._counts, tally)
        self._show_lag()
        say = self._log.warning if tally.is_alarming else self._log.info
        say(tally.sentence(), **tally.fields())

    def _show_lag(self) -> None:
        """Show how far behind it is, by what the last fetches said: nothing is asked of the broker for it."""
        lag, owned = dict.fromkeys((source.name for source in self._sources.values()), 0.0), Counter[str]()
        for place in self._consumer.position(self._consumer.assignment()):
            source = self._sources[place.topic].name
            owned[source] += 1
            _, end = self._consumer.get_watermark_offsets(place, cached=True)
            lag[source] += max(0, end - place.offset) if place.offset >= 0 else 0
        self._counts.show_all("lag_records", {(name,): behind for name, behind in lag.items()})
        self._counts.show_all("partitions", {(name,): float(owned[name]) for name in lag})
        self._counts.show("report_timestamp_seconds", time.time())
