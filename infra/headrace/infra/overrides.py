"""Operators' overrides on the fleet topic: said, listed, taken back; one that would shed is refused, with numbers."""

from collections.abc import Sequence

from headrace.infra.config_tree import nearest
from headrace.infra.fleet_topics import publish_records, read_fleet
from headrace.infra.latest import read_latest
from headrace.infra.what_if.answer import WhatIf
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode, encode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.overrides import Override, OverrideKind, check_override, is_override_key, override_key
from headrace.schemas.topics import FLEET, TopicSettings, topic_table

SHED_FROM = 0.005
"""Share of the demand: what an override sheds beyond it is too much."""
SHORTEST_MS = 60_000
LONGEST_MS = 30 * 86_400_000


def refusal(answer: WhatIf) -> str | None:
    """Say why an override would break what must hold, with the numbers; None where it would not."""
    before, after = answer.before, answer.after
    more_rps = after.shed_rps - before.shed_rps
    if more_rps <= SHED_FROM * max(after.demand_rps, 1e-9):
        return None
    lost: dict[str, float] = {}
    for share in answer.shares:
        lost[share.route] = lost.get(share.route, 0.0) + share.before_rps - share.after_rps
    worst = sorted((route for route in lost if lost[route] > 0.05), key=lambda route: (-lost[route], route))[:3]
    whose = ", ".join(f"{route} loses {lost[route]:.1f}" for route in worst)
    return (
        f"{'; '.join(answer.edits)} would leave {after.capacity_rps:.1f} RPS of capacity for {after.demand_rps:.1f}: "
        f"{after.shed_rps:.1f} RPS shed, {before.shed_rps:.1f} now ({whose})"
    )


def sound(override: Override) -> Override:
    """Give an override that may be published.

    Raises:
        InvalidInputError: with everything that is wrong.
    """
    problems, for_ms = list(check_override(override)), override.expires_ms - override.made_ms
    if not SHORTEST_MS <= for_ms <= LONGEST_MS:
        problems.append(f"--for is {for_ms / 1000:g} s; 1 minute to 30 days")
    if problems:
        raise InvalidInputError("override", tuple(problems))
    return override


def publish_override(kafka: KafkaSettings, topics: TopicSettings, override: Override) -> None:
    """Publish an override; it counts from the solver's next tick on.

    Raises:
        InvalidInputError: the fleet has no such engine; the nearest is named.
        UnreachableError, MissingTopicError, UnpublishedError: it did not reach the topic.
    """
    known = [engine.engine_id for engine in read_fleet(kafka, topics).engines]
    if override.kind is OverrideKind.DRAIN and override.target not in known:
        near = nearest(override.target, known) if known else "the fleet is empty"
        raise InvalidInputError("override", (f"{override.target!r} is no engine of the fleet; {near}",))
    publish_records(kafka, [(topic_table(topics)[FLEET].name, override.key, encode(override))])


def read_overrides(kafka: KafkaSettings, topics: TopicSettings) -> tuple[Override, ...]:
    """Give every override that stands on the topic, expired ones too, by key."""
    found: list[Override] = []
    for key, record in read_latest(kafka, topic_table(topics)[FLEET].name).items():
        override = decode(Override, record.value, record.headers) if is_override_key(key) else None
        if override is not None and not isinstance(override, Rejected):
            found.append(override)
    return tuple(found)


def take_back(kafka: KafkaSettings, topics: TopicSettings, kind: OverrideKind, targets: Sequence[str]) -> None:
    """Write a tombstone for the override of each target.

    Raises:
        InvalidInputError: one has none; the message says which have.
        UnreachableError, MissingTopicError, UnpublishedError: it did not reach the topic.
    """
    there = [override.target for override in read_overrides(kafka, topics) if override.kind is kind]
    problems = [
        f"{name!r} has no {kind.lower()} to take back; {nearest(name, there) if there else 'nothing has'}"
        for name in targets
        if name not in there
    ]
    if problems:
        raise InvalidInputError("override", tuple(problems))
    name = topic_table(topics)[FLEET].name
    publish_records(kafka, [(name, override_key(kind, target), None) for target in targets])
