"""Reads slices of topics by one client that joins no group; ends with the last slice, or when the time is up."""

from collections.abc import Collection, Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.infra.doctor.core.picture import Place, Unread
from headrace.infra.doctor.core.slices import Slice
from headrace.infra.doctor.gather.time_left import TimeLeft, why
from headrace.schemas.bus.clients import consumer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord

POLL_S = 0.2
BATCH = 1_000
QUIET_POLLS = 25
"""Polls in a row without a record after which a slice counts as not to be had: five seconds."""


class Tails:
    """One client over all topics. `unread` grows with what was not read to its end."""

    def __init__(self, kafka: KafkaSettings, left: TimeLeft) -> None:
        self._said = ""
        self._left = left
        self._consumer = Consumer(consumer_options(kafka, error_cb=self._client_error))
        self.unread: list[Unread] = []

    def offsets_at(self, places: Collection[Place], at_ms: int) -> Mapping[Place, int | None]:
        """Give the first offset of that time or later; None where there is none, or it was not told."""
        asked = [TopicPartition(*place, at_ms) for place in places]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=self._left.call_s) if asked else []
        except KafkaException as error:
            self.unread.append(Unread("offsets by time", why(error)))
            return {}
        return {(at.topic, at.partition): at.offset if at.error is None and at.offset >= 0 else None for at in found}

    def read(self, slices: Collection[Slice]) -> Iterator[RawRecord]:
        """Give the committed records of each slice, of a partition in its order."""
        open_ = {(each.topic, each.partition): each for each in slices if each.start < each.stop}
        self._consumer.assign([TopicPartition(*place, each.start) for place, each in open_.items()])
        quiet = 0
        while open_ and not self._left.is_up and quiet < QUIET_POLLS:
            first = self._consumer.poll(POLL_S)
            quiet = quiet + 1 if first is None else 0
            for message in [] if first is None else [first, *self._consumer.consume(BATCH, 0)]:
                place, error = (message.topic() or "", message.partition() or 0), message.error()
                if place not in open_:
                    continue
                if error is None and (message.offset() or 0) < open_[place].stop:
                    yield raw_record(message)
                if self._is_done(message.offset() or 0, error, open_[place]):
                    del open_[place]
                    self._consumer.incremental_unassign([TopicPartition(*place)])
        self._consumer.unassign()
        for topic in sorted({place[0] for place in open_}):
            self.unread.append(Unread(f"records of {topic}", self._said or "not read to the end in time"))

    def close(self) -> None:
        """Let the client go."""
        self._consumer.close()

    def _is_done(self, offset: int, error: KafkaError | None, of: Slice) -> bool:
        if error is None:
            return offset + 1 >= of.stop
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name for the end of a partition
            return True
        self._said = error.str()
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self.unread.append(Unread(f"records of {of.topic}", self._said))
            return True
        return False

    def _client_error(self, error: KafkaError) -> None:
        self._said = error.str()
