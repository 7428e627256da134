"""The topic table: every topic's name, key, partitions and policy, once.

A state topic has exactly as many partitions as its signals topic, fixed for life: keyed state cannot be re-partitioned.
`weights` has one partition, so that a snapshot has one order. It forgets what was superseded, so that a data plane
starts quickly; `snapshots` keeps every one for `history_ms`, in the same records, for whoever looks back.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Le

from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.routed import RoutedRequests
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.weights import RouteWeights

HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_SIGNAL_BYTES = 2 * 1024 * 1024
"""Signals are far below the other topics' limit: a dead letter holds a refused signal, and more."""

SIGNALS_ENGINE = "signals.engine"
SIGNALS_DEMAND = "signals.demand"
SIGNALS_NETWORK = "signals.network"
STATE_ENGINE = "state.engine"
STATE_DEMAND = "state.demand"
STATE_NETWORK = "state.network"
FLEET = "fleet"
PROFILES = "profiles"
WEIGHTS = "weights"
DECISIONS = "decisions"
SNAPSHOTS = "snapshots"
SHADOW = "shadow"
ROUTED = "routed"
DEAD_LETTERS = "dead-letters"

STATE_OF = {SIGNALS_ENGINE: STATE_ENGINE, SIGNALS_DEMAND: STATE_DEMAND, SIGNALS_NETWORK: STATE_NETWORK}
"""Which state topic the fold over a signals topic writes."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Names and sizes of the topics.

    Attributes:
        prefix: put before every role's name.
        names: full names by role, for teams with naming rules; a role named here ignores the prefix.
        partitions: of signals, state, fleet and dead letters.
        replication: of every topic.
        history_ms: how long signals, decisions, snapshots, routed requests and superseded states are kept for replay.
    """

    prefix: str = "headrace."
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    partitions: Annotated[int, Ge(1), Le(1024)] = 8
    replication: Annotated[int, Ge(1), Le(7)] = 1
    history_ms: Annotated[int, Ge(60_000)] = WEEK_MS


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as it should be. `config` holds the broker's own setting names."""

    role: str
    name: str
    key: str
    record: type
    partitions: int
    replication: int
    config: Mapping[str, str]

    @property
    def compacted(self) -> bool:
        """Whether the newest record of each key is kept for ever."""
        return self.config["cleanup.policy"] == "compact"


_ROLES: tuple[tuple[str, str, type, bool, bool], ...] = (
    # role, key, record, compacted, one partition
    (SIGNALS_ENGINE, "engine_id", EngineSignals, False, False),
    (SIGNALS_DEMAND, "cluster|model|class", Demand, False, False),
    (SIGNALS_NETWORK, "from|to", NetworkProbe, False, False),
    (STATE_ENGINE, "engine_id", EngineState, True, False),
    (STATE_DEMAND, "cluster|model|class", DemandState, True, False),
    (STATE_NETWORK, "from|to", NetworkState, True, False),
    (FLEET, "engine_id", EngineSpec, True, True),
    (PROFILES, "profile_id", LatencyProfile, True, True),
    (SNAPSHOTS, "cluster|model|class, and !commit", RouteWeights, False, True),
    (SHADOW, "as snapshots, and !decision", RouteWeights, False, True),
    (WEIGHTS, "cluster|model|class, and !commit", RouteWeights, True, True),
    (DECISIONS, "version", SolveRecord, False, True),
    (ROUTED, "cluster|model|class", RoutedRequests, False, False),
    (DEAD_LETTERS, "source topic", DeadLetter, False, True),
)
_STATES = tuple(STATE_OF.values())
_WITH_HISTORY = (*_STATES, FLEET, PROFILES)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NAME_WORDS = "a topic's name is 1 to 249 of A-Z a-z 0-9 . _ -"
ROLES = tuple(role for role, *_ in _ROLES)


def topic_table(settings: TopicSettings) -> Mapping[str, Topic]:
    """Give every topic by role.

    Raises:
        InvalidInputError: a name is given for a role that does not exist, is none to Kafka, or is shared by two roles.
    """
    problems = [
        f"names.{role}: no such topic; roles are {', '.join(ROLES)}" for role in settings.names if role not in ROLES
    ]
    table = {
        role: _topic(settings, role, key, record, compacted, single) for role, key, record, compacted, single in _ROLES
    }
    problems += _name_problems(settings, table.values())
    by_name: dict[str, str] = {}
    for topic in table.values():
        if topic.name in by_name:
            problems.append(f"names: {topic.role} and {by_name[topic.name]} are both called {topic.name!r}")
        by_name[topic.name] = topic.role
    if problems:
        raise InvalidInputError("topics", tuple(problems))
    return table


def _name_problems(settings: TopicSettings, topics: Iterable[Topic]) -> Iterator[str]:
    """Tell what Kafka would refuse as a name, by the setting that it comes from; a prefix once."""
    by_prefix = [topic.name for topic in topics if topic.role not in settings.names]
    wrong = max((name for name in by_prefix if not _is_name(name)), key=len, default=None)
    if wrong is not None:
        gives = f"which gives {wrong[:60]!r} of {len(wrong)} characters"
        yield f"prefix is {settings.prefix[:60]!r}, {gives}; {_NAME_WORDS}"
    for role, name in settings.names.items():
        if not _is_name(name):
            yield f"names.{role} is {name[:60]!r} of {len(name)} characters; {_NAME_WORDS}"


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def _topic(settings: TopicSettings, role: str, key: str, record: type, compacted: bool, single: bool) -> Topic:  # noqa: FBT001 - a row of the table
    limit = MAX_SIGNAL_BYTES if role in STATE_OF else MAX_MESSAGE_BYTES
    config = {"cleanup.policy": "compact" if compacted else "delete", "max.message.bytes": str(limit)}
    if role in STATE_OF:
        # A signal's own clock is held against the broker's, not against the producer's other time stamp.
        config["message.timestamp.type"] = "LogAppendTime"
    if not compacted:
        config["retention.ms"] = str(settings.history_ms)
    elif role not in _STATES:
        # Compaction passes over the open segment: an hourly one keeps what a late reader has to read short.
        config["segment.ms"] = str(HOUR_MS)
        config["min.cleanable.dirty.ratio"] = "0.1"
    if role in _WITH_HISTORY:
        # The lag keeps every superseded input of the solver for replay; a late reader still finds a compact table.
        config["min.compaction.lag.ms"] = str(settings.history_ms)
    return Topic(
        role=role,
        name=settings.names.get(role, settings.prefix + role),
        key=key,
        record=record,
        partitions=1 if single else settings.partitions,
        replication=settings.replication,
        config=config,
    )
