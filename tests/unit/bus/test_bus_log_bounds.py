"""A partition whose leader is being elected is asked again; what will not pass is said at once."""

from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.schemas.bus import log_bounds as module
from headrace.schemas.bus.log_bounds import log_bounds


class Electing:
    """A client whose broker gives these errors, one a question, and then an answer."""

    def __init__(self, *errors: KafkaError) -> None:
        self.errors = list(errors)

    def get_watermark_offsets(self, place: TopicPartition, **_: object) -> tuple[int, int]:
        if self.errors:
            raise KafkaException(self.errors.pop(0))
        return place.partition, 7


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.0)


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
@pytest.mark.parametrize("marked", [True, False])
def test_an_election_is_waited_for_whether_or_not_the_client_marks_it_as_passing(
    code: int,
    marked: bool,  # noqa: FBT001 - a case's input
) -> None:
    no_leader = KafkaError(code, "no leader", retriable=marked)
    assert log_bounds(cast("Consumer", Electing(no_leader, no_leader)), "t", 3) == (3, 7)


def test_an_election_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ELECTION_S", -1.0)
    no_leader = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION, "no leader", retriable=True)
    with pytest.raises(KafkaException, match="no leader"):
        log_bounds(cast("Consumer", Electing(no_leader)), "t", 3)


def test_what_does_not_pass_is_said_at_once() -> None:
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "denied")
    client = Electing(denied, denied)
    with pytest.raises(KafkaException, match="denied"):
        log_bounds(cast("Consumer", client), "t", 3)
    assert len(client.errors) == 1
