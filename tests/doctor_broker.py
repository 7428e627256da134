"""A doctor's system put onto a broker: its topics as they are planted, its records with their times."""

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from doctor_system import System
from headrace.infra.configuration.config import Config
from headrace.infra.doctor.core.checks import check_named, check_names
from headrace.infra.doctor.core.diagnosis import Report, diagnose
from headrace.infra.doctor.gather.gather import gather
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.publisher import Published, Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import TopicSettings
from solver_desk import until

BUDGET_S = 60.0
WAIT_S = 60.0


def config_for(kafka: KafkaSettings, topics: TopicSettings) -> Config:
    return Config(kafka=kafka, topics=topics)


def create_topics(kafka: KafkaSettings, system: System) -> None:
    """Create the system's topics, with what is planted in them."""
    table = system.setup.table
    new = [
        NewTopic(
            topic.name,
            system.partitions.get(role, topic.partitions),
            topic.replication,
            config={**topic.config, **system.configs.get(role, {})},
        )
        for role, topic in table.items()
        if role not in system.missing
    ]
    admin = admin_client(kafka)
    for future in admin.create_topics(new, request_timeout=30).values():
        future.result(timeout=60)
    places = [TopicPartition(topic.topic, number) for topic in new for number in range(topic.num_partitions)]
    until(lambda: _have_leaders(admin, places), WAIT_S)


def _have_leaders(admin: AdminClient, places: list[TopicPartition]) -> bool:
    """Say whether every partition answers: a broker tells of a topic before all its parts lead."""
    told = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()), request_timeout=10)
    return all(each.exception(timeout=30) is None for each in told.values())


def publish(kafka: KafkaSettings, system: System) -> None:
    """Write every record that has a topic."""
    table = system.setup.table
    publisher = Publisher(kafka)
    for put in system.puts():
        if put.role not in system.missing:
            assert publisher.publish(table[put.role].name, put.key, put.value, put.at_ms) == Published()
    assert publisher.close(30.0) == 0


def examined(config: Config, now_ms: int, *only: str) -> Report:
    """Let the doctor look at the broker, as of an instant: what is judged then does not depend on how long it took."""
    checks = [check_named(name) for name in only or check_names()]
    return diagnose(gather(config, lambda: now_ms, BUDGET_S), now_ms, checks)
