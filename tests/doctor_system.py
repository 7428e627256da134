"""A whole system as the records that it leaves on its topics, healthy as of an instant: what a doctor looks at.

A fault is planted by changing it. The same system is judged as a picture, without a broker, and written onto one.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache

from headrace.infra.doctor.core.checks import check_named, check_names
from headrace.infra.doctor.core.contract import Finding
from headrace.infra.doctor.core.diagnosis import Report, diagnose
from headrace.infra.doctor.core.picture import (
    BrokerSeen,
    GroupSeen,
    PartitionSeen,
    Picture,
    Presence,
    Setup,
    Telemetry,
    TopicSeen,
)
from headrace.infra.doctor.core.reading import Reading
from headrace.infra.doctor.gather.gather import with_reading
from headrace.infra.fleet.scenarios import load_scenario
from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.overrides import Override
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, Health, Metric, NetworkProbe, Vantage
from headrace.schemas.state import DemandState, EngineState, Invalid, LatencyState, NetworkState
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
    STATE_OF,
    WEIGHTS,
)
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.state_view import StateFold, StateView
from headrace.solver.core.tick import Tick, TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.streams.core.partitioner import partition_of

NOW_MS = 1_900_000_000_000
PERIOD_MS = 2_000
SPAN_MS = 40_000
TICKS = 12
RPS = {"cluster-a": 90.0, "cluster-b": 100.0, "cluster-c": 40.0}
RTT_S = 0.02


@dataclass(frozen=True, slots=True)
class Put:
    """One record of the system: its topic's role, key, value and time."""

    role: str
    key: bytes
    value: bytes | None
    at_ms: int


@dataclass
class System:
    """Everything is a mutable table; what is not planted is healthy."""

    now_ms: int = NOW_MS
    setup: Setup = field(default_factory=Setup)
    specs: dict[str, EngineSpec] = field(default_factory=dict)
    profiles: dict[str, LatencyProfile] = field(default_factory=dict)
    states: dict[str, EngineState] = field(default_factory=dict)
    demands: dict[str, DemandState] = field(default_factory=dict)
    links: dict[tuple[str, str], NetworkState] = field(default_factory=dict)
    overrides: list[Override] = field(default_factory=list)
    signals: list[tuple[int, EngineSignals | Demand | NetworkProbe]] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    letters: list[tuple[int, DeadLetter]] = field(default_factory=list)
    raw: list[Put] = field(default_factory=list)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    members: dict[str, int | None] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)
    """Records of a role's first partition that came lately, and that a doctor does not read."""
    unread_for_ms: dict[str, int] = field(default_factory=dict)
    operations: dict[str, frozenset[str]] = field(default_factory=dict)
    telemetry: list[Telemetry] = field(default_factory=list)
    brokers: tuple[BrokerSeen, ...] = (BrokerSeen("127.0.0.1:9092", None, None), BrokerSeen("127.0.0.1:9092", 1, None))
    unreachable: str | None = None

    def map_ticks(self, change: Callable[[Tick], Tick]) -> None:
        self.ticks = [change(tick) for tick in self.ticks]

    def puts(self) -> Iterator[Put]:
        """Give every record, in the order of its topic."""
        for profile in self.profiles.values():
            yield Put(PROFILES, profile.key, encode(profile), self.now_ms)
        for spec in self.specs.values():
            yield Put(FLEET, spec.key, encode(spec), self.now_ms)
        for override in self.overrides:
            yield Put(FLEET, override.key, encode(override), self.now_ms)
        for at_ms, signal in sorted(self.signals, key=lambda pair: pair[0]):
            yield Put(_role_of(signal), signal.key, encode(signal), at_ms)
        for state in self.states.values():
            yield Put(STATE_ENGINE, state.key, encode(state), state.signal_timestamp_ms)
        for demand in self.demands.values():
            yield Put(STATE_DEMAND, demand.key, encode(demand), demand.signal_timestamp_ms)
        for link in self.links.values():
            yield Put(STATE_NETWORK, link.key, encode(link), link.signal_timestamp_ms)
        yield from self._written()
        for at_ms, letter in self.letters:
            yield Put(DEAD_LETTERS, letter.key, encode(letter), at_ms)
        yield from self.raw

    def _written(self) -> Iterator[Put]:
        for number, tick in enumerate(self.ticks):
            at_ms = tick.record.tick_ms
            for route in tick.snapshot.routes if number == 0 else ():
                yield Put(WEIGHTS, route.key, encode(route), at_ms)
                yield Put(SNAPSHOTS, route.key, encode(route), at_ms)
            for role in (WEIGHTS, SNAPSHOTS):
                yield Put(role, tick.snapshot.commit.key, encode(tick.snapshot.commit), at_ms)
            yield Put(DECISIONS, tick.record.key, encode(tick.record), at_ms)

    def picture(self) -> Picture:
        """Give what a doctor would gather of it."""
        table = self.setup.table
        reading = Reading(table)
        ends: dict[tuple[str, int], int] = {}
        for put in self.puts():
            if put.role in self.missing:
                continue
            partition = partition_of(put.key, table[put.role].partitions)
            place = (table[put.role].name, partition)
            ends[place] = ends.get(place, 0) + 1
            reading.offer(RawRecord(*place, ends[place] - 1, put.at_ms, put.key, put.value))
        topics = {topic.name: self._topic(role, ends) for role, topic in table.items()}
        picture = Picture(
            self.setup,
            self.now_ms,
            unreachable=self.unreachable,
            brokers=self.brokers,
            topics=topics,
            groups={group.group_id: group for group in self._groups(ends)},
            telemetry=tuple(self.telemetry),
        )
        return picture if self.unreachable is not None else with_reading(picture, reading)

    def report(self) -> Report:
        """Let every check judge it."""
        return diagnose(self.picture(), self.now_ms, [check_named(name) for name in check_names()])

    def findings(self) -> tuple[Finding, ...]:
        return self.report().findings

    def _topic(self, role: str, ends: dict[tuple[str, int], int]) -> TopicSeen:
        topic = self.setup.table[role]
        if role in self.missing:
            return TopicSeen(topic.name, Presence.MISSING)
        extra = self.behind.get(role, 0)
        partitions = tuple(
            PartitionSeen(
                n,
                1,
                (1,),
                (1,),
                0,
                ends.get((topic.name, n), 0) + extra,
                extra,
                extra - (self.more.get(role, 0) if n == 0 else 0),
            )
            for n in range(self.partitions.get(role, topic.partitions))
        )
        config = {**topic.config, "retention.bytes": "-1", **self.configs.get(role, {})}
        return TopicSeen(topic.name, Presence.THERE, partitions, config, self.operations.get(role))

    def _groups(self, ends: dict[tuple[str, int], int]) -> Iterator[GroupSeen]:
        streams = self.setup.streams.group_id
        signals = {self.setup.table[role].name for role in STATE_OF}
        committed = {place: end for place, end in ends.items() if place[0] in signals}
        unread = {(self.setup.table[role].name, 0): self.now_ms - ms for role, ms in self.unread_for_ms.items()}
        yield GroupSeen(streams, self.members.get("streams", 1), "STABLE", committed, unread_ms=unread)
        leader = f"{self.setup.table[WEIGHTS].name}.leader"
        yield GroupSeen(leader, self.members.get("solver", 1), "STABLE", {})
        if self.setup.bridge.sources:
            yield GroupSeen(self.setup.bridge.group_id, self.members.get("bridge", 1), "STABLE", {})


def healthy() -> System:
    """Give the three regions at ease, engines of 80 to 100 RPS, 230 RPS asked for; each time a copy of its own."""
    return deepcopy(_at_ease())


@cache
def _at_ease() -> System:
    return healthy_at(NOW_MS, Setup())


def healthy_at(now_ms: int, setup: Setup) -> System:
    """Give the same as of another instant, and with another configuration."""
    system, scenario = System(now_ms, setup), load_scenario("three-regions")
    # Solver and doctor are a moment apart, as they would be.
    newest_ms = now_ms - 1_000
    system.profiles = {profile.profile_id: profile for profile in scenario.profiles}
    system.specs = {each.spec.engine_id: each.spec for each in scenario.engines}
    model = scenario.model
    for each in scenario.engines:
        system.states[each.spec.engine_id] = engine_state(each.spec.engine_id, model, newest_ms, each.replicas)
    for cluster, rps in RPS.items():
        system.demands[cluster] = DemandState(
            cluster,
            model,
            "default",
            newest_ms,
            newest_ms,
            newest_ms,
            rps,
            rps,
            rps,
            0.0,
            0.0,
            1.0,
            Invalid.NO,
            0,
            7,
            b"",
        )
        for spec in system.specs.values():
            system.links[cluster, spec.site] = NetworkState(
                cluster, spec.site, newest_ms, newest_ms, newest_ms, 10, RTT_S, RTT_S, 0.0, Invalid.NO, 0, 7, b""
            )
    for at_ms in range(newest_ms - SPAN_MS, newest_ms + 1, PERIOD_MS):
        system.signals += [(at_ms, signal) for signal in told_at(system, model, at_ms)]
    problem = assemble(view_of(system), system.setup.solver, now_ms)
    previous = None
    for number in range(TICKS):
        at_ms = now_ms - 500 * (TICKS - number)
        stamp = TickStamp(3, 40 + number, at_ms)
        tick = solve_tick(problem, previous, system.setup.solver, Glop(), stamp)
        system.ticks.append(tick)
        previous = tick.snapshot
    return system


def engine_state(engine_id: str, model: str, at_ms: int, replicas: int) -> EngineState:
    latencies = tuple(
        LatencyState(model, metric, 60, mean_s, mean_s, mean_s, mean_s, mean_s)
        for metric, mean_s in sorted({Metric.E2E: 0.7, Metric.TBOT: 0.008, Metric.TTFT: 0.1}.items())
    )
    return EngineState(
        engine_id,
        at_ms,
        at_ms,
        at_ms,
        Health.HEALTHY,
        replicas,
        replicas,
        replicas,
        5.0,
        0.0,
        0.2,
        latencies,
        1.0,
        (),
        Invalid.NO,
        0,
        7,
        b"",
        PERIOD_MS,
        10_000,
        60.0,
    )


def told_at(system: System, model: str, at_ms: int) -> Iterator[EngineSignals | Demand | NetworkProbe]:
    for engine_id in system.specs:
        yield EngineSignals(engine_id, f"{engine_id}/sim", Vantage.ENGINE, at_ms - PERIOD_MS, at_ms, (), None)
    for cluster in RPS:
        yield Demand(cluster, model, "default", f"{cluster}/gateway", at_ms - PERIOD_MS, at_ms, 100, 0, 0)
        for spec in system.specs.values():
            yield NetworkProbe(cluster, spec.site, f"{cluster}/probe", at_ms, RTT_S)


def moved(signal: EngineSignals | Demand | NetworkProbe, by_ms: int) -> EngineSignals | Demand | NetworkProbe:
    """Give a signal of another instant."""
    if isinstance(signal, NetworkProbe):
        return replace(signal, at_ms=signal.at_ms + by_ms)
    return replace(signal, period_start_ms=signal.period_start_ms + by_ms, period_end_ms=signal.period_end_ms + by_ms)


def view_of(system: System) -> StateView:
    table = system.setup.table
    fold = StateFold(table)
    records = (
        *system.profiles.values(),
        *system.specs.values(),
        *system.states.values(),
        *system.demands.values(),
        *system.links.values(),
    )
    roles = {LatencyProfile: PROFILES, EngineSpec: FLEET, EngineState: STATE_ENGINE}
    roles |= {DemandState: STATE_DEMAND, NetworkState: STATE_NETWORK}
    for record in records:
        name = table[roles[type(record)]].name
        assert fold.offer(RawRecord(name, 0, 0, 0, record.key, encode(record))) is None
    return fold.view()


def _role_of(signal: EngineSignals | Demand | NetworkProbe) -> str:
    return {EngineSignals: SIGNALS_ENGINE, Demand: SIGNALS_DEMAND, NetworkProbe: SIGNALS_NETWORK}[type(signal)]
