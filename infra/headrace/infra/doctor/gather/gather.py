"""`gather(config, clock_ms, budget_s)`: asks for everything, gives the picture; never hangs, nor raises for a broker.

    reachable? ─► addresses ─ topics ─ offsets ─ groups ─► slices ─► records, folded as they come ─► telemetry

Each call has a bound, all of them together another; what was not had by then is named.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.infra.configuration.config import Config
from headrace.infra.doctor.core.picture import GroupSeen, Picture, Place, Presence, Setup, TopicSeen, Unread
from headrace.infra.doctor.core.reading import Reading
from headrace.infra.doctor.core.slices import Appetite, Slice, earlier_slice, newest_slice
from headrace.infra.doctor.gather.addresses import try_addresses
from headrace.infra.doctor.gather.admin import Admin
from headrace.infra.doctor.gather.bounded_registry import open_registry
from headrace.infra.doctor.gather.tails import Tails
from headrace.infra.doctor.gather.telemetry import try_telemetry
from headrace.infra.doctor.gather.time_left import TimeLeft
from headrace.infra.kafka_edge import UnreachableError, client_problems, require_topics
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.topics import (
    DEAD_LETTERS,
    DECISIONS,
    FLEET,
    PROFILES,
    SIGNALS_DEMAND,
    SIGNALS_ENGINE,
    SIGNALS_NETWORK,
    SNAPSHOTS,
    STATE_DEMAND,
    STATE_ENGINE,
    STATE_NETWORK,
    WEIGHTS,
)

MINUTE_MS = 60_000
LOOK_BACK_MS = 10 * MINUTE_MS
"""How far back it is looked who was heard then, and which dead letters there were."""
TO_THE_END = 1 << 62
RATE_MS = MINUTE_MS
"""Over what time a topic's rate is taken."""
FEW_UNREAD = 25
"""Of a partition in which so few records are unread, none is looked at: offsets are committed by the batch."""

_FLEET: Mapping[str, Appetite] = {role: Appetite(None, least=0, most=200_000) for role in (FLEET, PROFILES)}
_STATES_OF_EACH = 4
"""So many states of each engine are within reach, should all of them lie in one partition."""


def gather(config: Config, clock_ms: Callable[[], int], budget_s: float) -> Picture:
    """Give the picture; where no broker answers, one that says so and holds nothing else of it."""
    setup = setup_of(config)
    refused = client_problems(config.kafka)
    if refused:
        return Picture(setup, clock_ms(), config_problems=refused)
    left = TimeLeft(budget_s)
    try:
        require_topics(config.kafka, (), timeout_s=left.call_s)
    except UnreachableError as error:
        brokers = try_addresses(setup.bootstrap_servers, {})
        return Picture(setup, clock_ms(), unreachable=str(error), brokers=brokers)
    return _gathered(config, setup, clock_ms, left)


def setup_of(config: Config) -> Setup:
    """Give what of a configuration is judged."""
    username = config.kafka.options.get("sasl.username")
    return Setup(
        config.kafka.bootstrap_servers,
        "User:ANONYMOUS" if username is None else f"User:{username}",
        config.registry.url,
        config.topics,
        config.bridge,
        config.streams,
        config.solver,
    )


def _gathered(config: Config, setup: Setup, clock_ms: Callable[[], int], left: TimeLeft) -> Picture:
    table = setup.table
    embedded = config.kafka.broker == "embedded"
    admin = Admin(admin_client(config.kafka), left, tells_members=not embedded)
    brokers = try_addresses(setup.bootstrap_servers, admin.addresses())
    topics = admin.topics({topic.name for topic in table.values()} | {s.topic for s in setup.bridge.sources.values()})
    registry = open_registry(config.registry)
    reading = Reading(table, registry)
    tails = Tails(config.kafka, left)
    try:
        topics, at_ms = _with_offsets(admin, tails, topics, clock_ms)
        groups = _with_unread(tails, topics, admin.groups(_group_ids(setup)))
        for appetites in (_FLEET, None):
            # The fleet first: of states as many are read as it takes to hear of every engine.
            wanted = appetites or _appetites(setup, len(reading.view.specs))
            newest, earlier = _slices(setup, wanted, tails, topics, at_ms)
            if embedded:
                # Its ends are too low: what is there is read until it says that there is no more.
                newest = [replace(each, stop=TO_THE_END) for each in newest]
            for record in tails.read(newest):
                came_since = embedded and at_ms < record.timestamp_ms <= clock_ms()
                if not came_since:
                    reading.offer(record)
            for record in tails.read(earlier):
                reading.offer(record, earlier=True)
    finally:
        tails.close()
    telemetry, problems = try_telemetry(config, topics, left)
    unread = (*admin.unread, *tails.unread)
    picture = Picture(
        setup,
        at_ms,
        config_problems=problems,
        registry_problem=None if registry is None else registry.problem,
        brokers=brokers,
        topics=topics,
        groups=groups,
        telemetry=telemetry,
        unread=tuple(dict.fromkeys((*unread, *_time_is_up(left)))),
    )
    return with_reading(replace(picture, unreachable=lost_since(config, unread, left)), reading)


def lost_since(config: Config, unread: tuple[Unread, ...], left: TimeLeft) -> str | None:
    """Say that no broker answers any more, where something could not be read: it has died while it was looked at."""
    if not unread:
        return None
    try:
        require_topics(config.kafka, (), timeout_s=left.call_s)
    except UnreachableError as error:
        return f"it answered, and no longer does: {error}" if not left.is_up else None
    return None


def with_reading(picture: Picture, reading: Reading) -> Picture:
    """Give the picture with what was read."""
    return replace(
        picture,
        view=reading.view,
        signals=tuple(reading.signals),
        written=tuple(reading.written),
        commit=reading.commit,
        commit_before=reading.commit_before,
        planned=tuple(reading.planned),
        routes=dict(reading.routes),
        decisions=tuple(reading.decisions),
        settings_text=reading.settings_text,
        letters=tuple(reading.letters),
        refused=tuple(reading.refused),
        went_back=tuple(reading.went_back),
        newest_ms=dict(reading.newest_ms),
    )


def _group_ids(setup: Setup) -> tuple[str, ...]:
    leader = (f"{setup.table[WEIGHTS].name}.leader",) if setup.solver.leader_election else ()
    bridge = (setup.bridge.group_id,) if setup.bridge.sources else ()
    return (setup.streams.group_id, *leader, *bridge)


def _time_is_up(left: TimeLeft) -> tuple[Unread, ...]:
    return (Unread("the rest", "the time is up; give it more with --timeout"),) if left.is_up else ()


def _with_offsets(
    admin: Admin, tails: Tails, topics: dict[str, TopicSeen], clock_ms: Callable[[], int]
) -> tuple[dict[str, TopicSeen], int]:
    """Give the topics with their offsets, and when their ends were told: what is read is judged as of then."""
    places = _places(topics)
    first, end = admin.first_offsets(places), admin.end_offsets(places)
    at_ms = clock_ms()
    before, lately = tails.offsets_at(places, at_ms - RATE_MS), tails.offsets_at(places, at_ms - LOOK_BACK_MS)
    described = {
        name: replace(
            topic,
            partitions=tuple(
                replace(
                    each,
                    first=first.get((name, each.number)),
                    end=end.get((name, each.number)),
                    end_before=before.get((name, each.number)),
                    end_lately=lately.get((name, each.number)),
                )
                for each in topic.partitions
            ),
        )
        for name, topic in topics.items()
    }
    return described, at_ms


def _with_unread(
    tails: Tails, topics: Mapping[str, TopicSeen], groups: Mapping[str, GroupSeen]
) -> dict[str, GroupSeen]:
    """Give the groups with the time of the earliest record that each has not read, as that record itself bears it."""
    found: dict[str, GroupSeen] = {}
    for group_id, group in groups.items():
        wanted: list[Slice] = []
        for (name, number), committed in group.committed.items():
            topic = topics.get(name)
            for each in topic.partitions if topic is not None else ():
                if each.number == number and each.first is not None and each.end is not None:
                    # What was committed may no longer lie in the log: the earliest that does is then the earliest.
                    start = max(committed, each.first)
                    wanted += [Slice(name, number, start, start + 1)] if start + FEW_UNREAD < each.end else []
        unread_ms = {(record.topic, record.partition): record.timestamp_ms for record in tails.read(wanted)}
        found[group_id] = replace(group, unread_ms=unread_ms)
    return found


def _places(topics: Mapping[str, TopicSeen]) -> list[Place]:
    return [
        (name, each.number)
        for name, topic in topics.items()
        if topic.presence is Presence.THERE
        for each in topic.partitions
        if each.leader is not None
    ]


def _appetites(setup: Setup, engines: int) -> Mapping[str, Appetite]:
    """Give how much is read of each topic but those of the fleet."""
    signals = Appetite(MINUTE_MS, least=50, most=2_000, earlier_ms=LOOK_BACK_MS, few=300)
    states = Appetite(2 * MINUTE_MS, least=500, most=max(4_000, _STATES_OF_EACH * engines))
    return {
        SIGNALS_ENGINE: signals,
        SIGNALS_DEMAND: signals,
        SIGNALS_NETWORK: signals,
        STATE_ENGINE: states,
        STATE_DEMAND: states,
        STATE_NETWORK: states,
        # A keyframe holds every route, so what is one back from here holds all of them.
        SNAPSHOTS: Appetite(setup.solver.keyframe_ms + MINUTE_MS, least=50, most=20_000),
        WEIGHTS: Appetite(LOOK_BACK_MS, least=500, most=10_000),
        DECISIONS: Appetite(LOOK_BACK_MS, least=120, most=2_000),
        # A sample, for their reasons: how many there are is told by the offsets.
        DEAD_LETTERS: Appetite(LOOK_BACK_MS, least=0, most=500),
    }


def _slices(
    setup: Setup, appetites: Mapping[str, Appetite], tails: Tails, topics: Mapping[str, TopicSeen], now_ms: int
) -> tuple[list[Slice], list[Slice]]:
    """Give what is read of the newest records, and of those of a while ago."""
    newest: list[Slice] = []
    earlier: list[Slice] = []
    for role, appetite in appetites.items():
        topic = topics.get(setup.table[role].name)
        if topic is None or topic.presence is not Presence.THERE:
            continue
        since = _offsets_then(tails, topic, appetite.since_ms, now_ms)
        then = _offsets_then(tails, topic, appetite.earlier_ms, now_ms)
        for each in topic.partitions:
            place = (topic.name, each.number)
            if each.first is None or each.end is None:
                continue
            found = newest_slice(topic.name, each.number, each.first, each.end, since.get(place), appetite)
            if found is None:
                continue
            old = earlier_slice(found, each.first, then.get(place), appetite)
            earlier += [] if old is None else [old]
            newest.append(found)
    return newest, earlier


def _offsets_then(tails: Tails, topic: TopicSeen, before_ms: int | None, now_ms: int) -> Mapping[Place, int | None]:
    if before_ms is None:
        return {}
    return tails.offsets_at(_places({topic.name: topic}), now_ms - before_ms)
