"""Dead letters to Kafka: how many requests a flood of them takes, and what is tried again."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError  # type: ignore[import-untyped]  # no types

from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.streams.letters import KafkaLetters


class Said:
    def __init__(self) -> None:
        self.events: list[str] = []

    def debug(self, event: str, **_: object) -> None:
        self.events.append(event)

    info = warning = error = debug


class Client:
    """aiokafka's producer as far as letters need it; takes batches of at most `largest` records."""

    def __init__(self, largest: int = 1_000_000, failures: int = 0) -> None:
        self.largest = largest
        self.failures = failures
        self.requests = 0
        self.arrived: list[int] = []
        self.partitions: set[int] = set()

    async def partitions_for(self, _: str) -> set[int]:
        return {0, 1, 2, 3}

    async def send_batch(self, batch: Any, _: str, *, partition: int) -> "asyncio.Future[None]":  # noqa: ANN401 - aiokafka's
        self.requests += 1
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        count = batch.record_count()
        if self.failures:
            self.failures -= 1
            raise KafkaTimeoutError
        if count > self.largest:
            answer.set_exception(MessageSizeTooLargeError())
        else:
            self.arrived.append(count)
            self.partitions.add(partition)
            answer.set_result(None)
        return answer


def letter(offset: int, size: int = 200) -> DeadLetter:
    return DeadLetter("signals", 0, offset, 0, b"k", bytes(size), RejectReason.MALFORMED, "no Avro framing", "streams")


def delivered(client: Client, letters: list[DeadLetter]) -> Said:
    said = Said()
    app: Any = SimpleNamespace(producer=SimpleNamespace(_ensure_producer=lambda: client))
    asyncio.run(asyncio.wait_for(KafkaLetters(app, "dead", said).deliver(letters), 30))
    return said


def test_two_thousand_letters_take_two_requests_and_not_two_thousand() -> None:
    client = Client()
    delivered(client, [letter(offset) for offset in range(2_000)])
    assert client.requests == len(client.arrived) <= 2
    assert sum(client.arrived) == 2_000
    assert len(client.partitions) == 1


def test_a_letter_larger_than_a_batch_goes_alone() -> None:
    client = Client()
    delivered(client, [letter(0), letter(1, 4_000_000), letter(2)])
    assert client.arrived == [1, 1, 1]


def test_no_letters_are_no_request() -> None:
    client = Client()
    delivered(client, [])
    assert client.requests == 0


def test_letters_that_did_not_arrive_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.streams.delivery.RETRY_S", 0.0)
    client = Client(failures=2)
    said = delivered(client, [letter(0), letter(1)])
    assert client.arrived == [2]
    assert said.events == ["dead letters not delivered, sending again"] * 2


def test_a_batch_too_large_for_its_topic_is_sent_letter_by_letter() -> None:
    client = Client(largest=1)
    assert delivered(client, [letter(0), letter(1), letter(2)]).events == []
    assert client.arrived == [1, 1, 1]


def test_a_letter_too_large_for_its_topic_is_given_up_and_said() -> None:
    client = Client(largest=0)
    assert delivered(client, [letter(0), letter(1)]).events == ["record is larger than its topic takes: given up"] * 2
