import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.topics import (
    DEAD_LETTERS,
    DECISIONS,
    ROLES,
    STATE_ENGINE,
    STATE_OF,
    WEIGHTS,
    TopicSettings,
    topic_table,
)


def test_a_state_topic_has_as_many_partitions_as_its_signals() -> None:
    table = topic_table(TopicSettings(partitions=12))
    assert {table[s].partitions for s in STATE_OF} == {12} == {table[s].partitions for s in STATE_OF.values()}


def test_weights_are_compacted_in_one_partition_so_that_a_snapshot_has_one_order() -> None:
    weights = topic_table(TopicSettings())[WEIGHTS]
    assert (weights.partitions, weights.compacted, weights.name) == (1, True, "headrace.weights")


def test_the_compaction_lag_keeps_superseded_states_as_long_as_the_history() -> None:
    state = topic_table(TopicSettings(history_ms=3_600_000))[STATE_ENGINE]
    assert state.config["min.compaction.lag.ms"] == "3600000"
    assert state.config["cleanup.policy"] == "compact"


def test_dead_letters_and_decisions_are_deleted_by_age() -> None:
    table = topic_table(TopicSettings(history_ms=3_600_000))
    assert {table[r].config["retention.ms"] for r in (DEAD_LETTERS, DECISIONS)} == {"3600000"}


def test_a_name_of_the_teams_own_ignores_the_prefix() -> None:
    table = topic_table(TopicSettings(prefix="prod.", names={WEIGHTS: "llm.routing.weights.v1"}))
    assert table[WEIGHTS].name == "llm.routing.weights.v1"
    assert table[STATE_ENGINE].name == "prod.state.engine"


def test_wrong_names_are_all_told_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        topic_table(TopicSettings(names={"wieghts": "x", WEIGHTS: "same", DECISIONS: "same"}))
    assert len(caught.value.problems) == 2
    assert "wieghts" in caught.value.problems[0]
    assert "'same'" in caught.value.problems[1]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250])
def test_what_kafka_takes_for_no_name_is_told_by_its_role(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        topic_table(TopicSettings(names={WEIGHTS: name}))
    (problem,) = caught.value.problems
    assert problem.startswith(f"names.{WEIGHTS} is {name[:60]!r} of {len(name)} characters; a topic's name is 1 to 249")


def test_a_prefix_that_makes_no_names_is_told_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        topic_table(TopicSettings(prefix="team/"))
    (problem,) = caught.value.problems
    assert problem == (
        "prefix is 'team/', which gives 'team/signals.network' of 20 characters; "
        "a topic's name is 1 to 249 of A-Z a-z 0-9 . _ -"
    )


def test_a_prefix_is_as_long_as_the_longest_name_allows() -> None:
    longest = max(map(len, ROLES))
    topic_table(TopicSettings(prefix="x" * (249 - longest)))
    with pytest.raises(InvalidInputError, match="of 250 characters"):
        topic_table(TopicSettings(prefix="x" * (250 - longest)))


def test_every_role_has_a_topic() -> None:
    assert set(topic_table(TopicSettings())) == set(ROLES)


def test_weights_close_a_segment_an_hour_so_that_a_late_reader_finds_them_compacted() -> None:
    assert topic_table(TopicSettings())[WEIGHTS].config["segment.ms"] == "3600000"


def test_a_dead_letter_has_room_for_the_largest_signal_and_signals_are_stamped_by_the_broker() -> None:
    table = topic_table(TopicSettings())
    limits = {int(table[role].config["max.message.bytes"]) for role in STATE_OF}
    assert 2 * max(limits) < int(table[DEAD_LETTERS].config["max.message.bytes"])
    assert {table[role].config["message.timestamp.type"] for role in STATE_OF} == {"LogAppendTime"}
