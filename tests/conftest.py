"""Brokers and topics for the tests that need them: one broker of a kind for the whole run, fresh topics for each test.

`broker` and `topics` run a test once per kind of broker and carry the marks; a test that needs one kind alone asks for
`embedded_broker` or `apache_broker` and carries the mark itself.

Properties are tried on as many examples as `thoroughness` says, where they say nothing themselves, and however slow the
machine is: a time per example would be a timing assert.
"""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from headrace.infra.brokers import start_broker
from headrace.infra.brokers.contract import Broker
from headrace.infra.provision import apply_topics
from headrace.schemas.topics import TopicSettings
from thoroughness import examples

settings.register_profile(
    "headrace", max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("headrace")

PARTITIONS = 2
QUICK_KAFKA = {"log.cleaner.backoff.ms": "200"}
"""Kafka compacts as soon as it may, so that a test need not wait for it."""


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[Broker]:
    """The embedded broker, one for all tests of the run."""
    with start_broker("embedded") as broker:
        yield broker


@pytest.fixture(scope="session")
def apache_broker() -> Iterator[Broker]:
    """Apache Kafka, one for all tests of the run. A test may restart or kill it if it starts it again."""
    with start_broker("apache", properties=QUICK_KAFKA) as broker:
        yield broker


@pytest.fixture(
    params=[pytest.param("embedded", marks=pytest.mark.embedded), pytest.param("apache", marks=pytest.mark.apache)]
)
def broker(request: pytest.FixtureRequest) -> Broker:
    """Each kind of broker in turn."""
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture
def topics(broker: Broker) -> TopicSettings:
    """Every topic of the table on `broker`, under a prefix of this test's own, with few partitions."""
    settings = fresh_topics()
    apply_topics(broker.kafka, settings)
    return settings


def fresh_topics() -> TopicSettings:
    """Give topic settings that no other test has."""
    return TopicSettings(prefix=f"test-{uuid.uuid4().hex[:12]}.", partitions=PARTITIONS)


@pytest.fixture
def apache_topics(apache_broker: Broker) -> TopicSettings:
    """Every topic of the table on Apache Kafka, under a prefix of this test's own."""
    settings = fresh_topics()
    apply_topics(apache_broker.kafka, settings)
    return settings
