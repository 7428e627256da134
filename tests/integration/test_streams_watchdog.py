"""The watchdog against a real broker: it barks at waiting signals that nobody folds, and at nothing else."""

import asyncio

import pytest
from streams_run import Bus

from headrace.infra.brokers.contract import Broker
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import SIGNALS_ENGINE, TopicSettings
from headrace.streams.log_offsets import LogOffsets
from headrace.streams.progress import Progress
from headrace.streams.watchdog import Watchdog


@pytest.mark.apache
def test_it_barks_only_when_signals_wait_and_nothing_moves(apache_broker: Broker, apache_topics: TopicSettings) -> None:
    bus = Bus(apache_broker.kafka, apache_topics)
    name, progress = bus.name(SIGNALS_ENGINE), Progress()
    owned = [(name, 0), (name, 1)]
    log_offsets = LogOffsets(apache_broker.kafka, "nobody")
    watchdog = Watchdog(log_offsets, 5_000, progress)

    def stalled() -> bool:
        return asyncio.run(watchdog.is_stalled(owned))

    try:
        progress.moved_at_s -= 60
        assert not stalled(), "nothing waits"
        bus.send(SIGNALS_ENGINE, b"e", b"x")
        bus.flush()
        assert not stalled(), "something moved just now: the question put it off"
        progress.moved_at_s -= 60
        assert stalled()
        progress.next_offsets = {(name, 0): 1, (name, 1): 1}
        assert not stalled(), "it was folded, and is not committed yet"
    finally:
        log_offsets.close()


def test_a_broker_that_is_away_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.streams.log_offsets.ASK_S", 0.2)
    progress = Progress()
    log_offsets = LogOffsets(KafkaSettings("127.0.0.1:1"), "nobody")
    watchdog = Watchdog(log_offsets, 5_000, progress)
    progress.moved_at_s -= 60
    try:
        assert not asyncio.run(watchdog.is_stalled([("t", 0)]))
    finally:
        log_offsets.close()
