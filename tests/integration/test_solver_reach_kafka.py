"""What a solver learns of its broker and topics before it leads: by their names, and by how they forget."""

from headrace.infra.brokers.contract import Broker
from headrace.schemas.topics import SIGNALS_ENGINE, WEIGHTS, TopicSettings, topic_table
from headrace.solver.reach import cleanup_policy, missing


def test_topics_that_are_not_there_are_named_with_what_to_run(broker: Broker, topics: TopicSettings) -> None:
    there = topic_table(topics)[WEIGHTS].name
    assert missing(broker.kafka, [there]) is None
    assert missing(broker.kafka, [there, "nowhere.fleet"]) == (
        "topics missing: run `headrace topics apply` (nowhere.fleet)"
    )


def test_the_broker_tells_which_topics_forget(broker: Broker, topics: TopicSettings) -> None:
    table = topic_table(topics)
    assert cleanup_policy(broker.kafka, table[WEIGHTS].name) == "compact"
    assert cleanup_policy(broker.kafka, table[SIGNALS_ENGINE].name) == "delete"
