"""What was gathered: the configuration, the brokers, the topics, the groups, and what the newest records say.

Everything that could not be had is None and stands in `unread` with its reason: a check that needs it says nothing, and
the check `unread` tells. Missing is not zero: an empty tuple is "looked, and there is none".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.schemas.check_signals import Signal
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.ids import RouteKey
from headrace.schemas.topics import Topic, TopicSettings, topic_table
from headrace.schemas.weights import RouteWeights, SnapshotCommit
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.settings import SolverSettings
from headrace.streams.bridge.settings import BridgeSettings
from headrace.streams.core.trial.trial import Trial
from headrace.streams.settings import StreamsSettings

Place = tuple[str, int]
"""A topic's name and a partition."""


class Presence(StrEnum):
    """Whether a topic is there, as far as this client may see."""

    THERE = "THERE"
    MISSING = "MISSING"
    DENIED = "DENIED"


@dataclass(frozen=True, slots=True)
class Setup:
    """What of the configuration is judged. `principal` is who this client is to the broker, as far as it tells."""

    bootstrap_servers: str = "127.0.0.1:9092"
    principal: str = "User:ANONYMOUS"
    registry_url: str = ""
    topics: TopicSettings = field(default_factory=TopicSettings)
    bridge: BridgeSettings = field(default_factory=BridgeSettings)
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    solver: SolverSettings = field(default_factory=SolverSettings)

    @property
    def table(self) -> Mapping[str, Topic]:
        """Every topic as it should be, by role."""
        return topic_table(self.topics)


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """One address: of `kafka.bootstrap_servers` (node None), or what a broker tells its clients to use.

    `problem` None = it takes connections.
    """

    address: str
    node: int | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """One partition. `leader` None = it has none; `end` is the offset after the last, `end_before` what it was then.

    `end_lately` is what it was ten minutes ago. Offsets are None where they were not told.
    """

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    first: int | None = None
    end: int | None = None
    end_before: int | None = None
    end_lately: int | None = None

    @property
    def grown(self) -> int:
        """How many records it grew by since; 0 where that is not known."""
        return 0 if self.end is None or self.end_before is None else max(0, self.end - self.end_before)

    @property
    def grown_lately(self) -> int:
        """How many records it grew by in the last ten minutes; 0 where that is not known."""
        return 0 if self.end is None or self.end_lately is None else max(0, self.end - self.end_lately)


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """One topic as it is. `config` None = it could not be read; `operations` None = the broker does not say."""

    name: str
    presence: Presence
    partitions: tuple[PartitionSeen, ...] = ()
    config: Mapping[str, str] | None = None
    operations: frozenset[str] | None = None

    @property
    def replication(self) -> tuple[int, ...]:
        """How many replicas its partitions have, each number once, rising."""
        return tuple(sorted({len(partition.replicas) for partition in self.partitions}))


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """One consumer group. `members` None = the broker does not say; `problem` says why nothing else is known.

    `unread_ms` is the time of the earliest record that it has not read, of each partition that has one; a partition of
    which that was not told is left out.
    """

    group_id: str
    members: int | None
    state: str
    committed: Mapping[Place, int]
    operations: frozenset[str] | None = None
    problem: str | None = None
    unread_ms: Mapping[Place, int] = field(default_factory=dict[Place, int])


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record of one of our topics that cannot be used, and why."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    reason: RejectReason
    detail: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A signal with the time its record bears."""

    record_ms: int
    signal: Signal


@dataclass(frozen=True, slots=True)
class Written:
    """A record of the weights topic, in its order: who wrote it."""

    offset: int
    record_ms: int
    epoch: int
    version: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """What a snapshot planned for on one route: told of a route only when it changes."""

    version: int
    route: RouteKey
    demand_rps: float


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter with the time of its refusal."""

    refused_ms: int
    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A topic of a team's own under [bridge.sources]: its newest record, and what its mapping makes of the newest ones.

    `problem` says why it could not be tried; `trial` is None then.
    """

    name: str
    topic: str
    mapping: str
    presence: Presence
    newest_ms: int | None
    trial: Trial | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be gathered, and why."""

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All that was gathered.

    Attributes:
        setup: the configuration.
        at_ms: as of when it is to be judged: reading takes time, and what came meanwhile is not in it.
        unreachable: why no broker answers; nothing else of the broker is known then.
        config_problems: what is wrong with the configuration itself: client options, mapping files.
        registry_problem: why the schema registry does not answer; None where it does or is not configured.
        brokers: every address.
        topics: by full name: ours, and those under [bridge.sources].
        groups: by group id.
        view: the newest sound record of each key of fleet, profiles and states, as the solver folds them; of states
            only what the newest records hold.
        signals: the newest ones, and some of `LOOK_BACK_MS` ago.
        written: the newest records of the weights topic, in their order.
        commit: the newest commit.
        commit_before: the oldest one of the last minutes.
        planned: what snapshots of the last minutes planned for, in their order.
        routes: the newest record of each route.
        decisions: the newest, in their order.
        settings_text: what the solver itself runs with, as its newest keyframe says.
        letters: the newest dead letters.
        telemetry: the bridge's sources.
        refused: records of our own topics that cannot be used.
        went_back: keys of states whose newest record had applied less than one before it: two wrote it.
        newest_ms: by topic, the time of the newest record that was read.
        unread: what could not be had.
    """

    setup: Setup
    at_ms: int = 0
    unreachable: str | None = None
    config_problems: tuple[str, ...] = ()
    registry_problem: str | None = None
    brokers: tuple[BrokerSeen, ...] = ()
    topics: Mapping[str, TopicSeen] = field(default_factory=dict[str, TopicSeen])
    groups: Mapping[str, GroupSeen] = field(default_factory=dict[str, GroupSeen])
    view: StateView | None = None
    signals: tuple[Heard, ...] | None = None
    written: tuple[Written, ...] | None = None
    commit: SnapshotCommit | None = None
    commit_before: SnapshotCommit | None = None
    planned: tuple[Planned, ...] = ()
    routes: Mapping[bytes, RouteWeights] = field(default_factory=dict[bytes, RouteWeights])
    decisions: tuple[SolveRecord, ...] | None = None
    settings_text: str | None = None
    letters: tuple[Letter, ...] | None = None
    telemetry: tuple[Telemetry, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()
    went_back: tuple[tuple[str, bytes], ...] = ()
    newest_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    unread: tuple[Unread, ...] = ()

    def topic(self, role: str) -> TopicSeen | None:
        """Give one of our topics as it is; None where nothing is known of it, or it is not there."""
        seen = self.topics.get(self.setup.table[role].name)
        return seen if seen is not None and seen.presence is Presence.THERE else None

    def was_read(self, role: str) -> bool:
        """Say whether all that was wanted of a topic's records was read: what is not there then is not there."""
        return all(each.part != f"records of {self.setup.table[role].name}" for each in self.unread)

    @property
    def heard_for_ms(self) -> int | None:
        """For how long signals have been heard, as far as was looked back; None where none was."""
        first = min((heard.record_ms for heard in self.signals or ()), default=None)
        return None if first is None else max(0, self.at_ms - first)

    def newest(self, role: str) -> int | None:
        """Give the time of a topic's newest record; None where none was read."""
        return self.newest_ms.get(self.setup.table[role].name)
