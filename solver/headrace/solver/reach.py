"""What stands between a solver and its topics, in one sentence: a broker that is silent, topics that are not there.

Asked at start and every ten seconds while there is nothing else to do; never while leading.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from confluent_kafka import KafkaException
from confluent_kafka.admin._config import ConfigEntry, ConfigResource  # `admin` does not export them
from confluent_kafka.admin._resource import ResourceType

from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.settings import KafkaSettings

if TYPE_CHECKING:
    from concurrent.futures import Future

ANSWER_TIMEOUT_S = 1.0
DESCRIBE_TIMEOUT_S = 5.0


def missing(kafka: KafkaSettings, topics: Sequence[str]) -> str | None:
    """Say what is missing; None where the broker answers and has every topic. Waits for at most ANSWER_TIMEOUT_S."""
    try:
        found = admin_client(kafka).list_topics(timeout=ANSWER_TIMEOUT_S).topics
    except KafkaException:
        return f"broker {kafka.bootstrap_servers} does not answer"
    absent = sorted(topic for topic in topics if topic not in found or found[topic].error is not None)
    if absent:
        return f"topics missing: run `headrace topics apply` ({', '.join(absent)})"
    return None


def cleanup_policy(kafka: KafkaSettings, topic: str) -> str | None:
    """Give how a topic forgets; None where the broker does not say."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(kafka)  # it must outlive the answer
    try:
        answers = cast(
            "Mapping[ConfigResource, Future[Mapping[str, ConfigEntry]]]",
            admin.describe_configs([resource], request_timeout=DESCRIBE_TIMEOUT_S),
        )
        entries = answers[resource].result()
    except KafkaException:
        return None
    entry = entries.get("cleanup.policy")
    return None if entry is None else entry.value
