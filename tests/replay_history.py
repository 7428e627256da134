"""A recorded run made by hand: three engines, two clusters, a tick a second, as a live solver would have written it.

What a broker would hold after it, by partition; `write` puts it into a folder as `headrace export` would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.replay.core.history import Place, Span
from headrace.replay.sources.manifest import Manifest, write_manifest
from headrace.replay.sources.writers import Writers
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.signals import Metric
from headrace.schemas.state import LatencyState
from headrace.schemas.topics import (
    DECISIONS,
    FLEET,
    PROFILES,
    SNAPSHOTS,
    STATE_DEMAND,
    STATE_ENGINE,
    STATE_NETWORK,
    TopicSettings,
    topic_table,
)
from headrace.schemas.weights import InputOffsets, Snapshot
from headrace.solver.core.decide import Decided, decide
from headrace.solver.core.effective import settings_text
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.digests import LogDigests
from headrace.solver.core.inputs.state_view import INPUT_ROLES, StateFold
from headrace.solver.core.tick import TickStamp
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from headrace.solver.snapshot_log import logged
from headrace.streams.core.partitioner import partition_of
from solver_inputs import demand_state, engine_state, network_state, profile, spec

START_MS = 1_700_000_000_000
PERIOD_MS = 1_000
TOPICS = TopicSettings(partitions=2)
TABLE = topic_table(TOPICS)
SETTINGS = SolverSettings(period_ms=PERIOD_MS, keyframe_ms=4_000)
ENGINES = {"engine-a": "a", "engine-b": "b", "engine-c": "c"}
_ROLE = {TABLE[role].record: role for role in (FLEET, PROFILES, STATE_ENGINE, STATE_DEMAND, STATE_NETWORK)}


@dataclass
class Run:
    """A live solver and its topics. Time passes by `tick`."""

    settings: SolverSettings = SETTINGS
    now_ms: int = START_MS
    epoch: int = 7
    version: int = 0
    previous: Snapshot | None = None
    logs: dict[Place, list[RawRecord]] = field(default_factory=dict)
    read: dict[Place, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fold, self.digests = StateFold(TABLE), LogDigests()
        self.keyframe: int | None = None

    def put(self, record: Record, at_ms: int | None = None) -> None:
        topic = TABLE[_ROLE[type(record)]]
        place = topic.name, partition_of(record.key, topic.partitions)
        self.append(place, record.key, encode(record), at_ms)

    def append(self, place: Place, key: bytes | None, value: bytes | None, at_ms: int | None = None) -> None:
        log = self.logs.setdefault(place, [])
        offset = log[-1].offset + 1 if log else 0
        log.append(RawRecord(*place, offset, self.now_ms if at_ms is None else at_ms, key, value))

    def beat(self, demand_b: float = 60.0, slow: Mapping[str, float] | None = None) -> None:
        """Publish what engines, gateways and probes say now."""
        for engine, site in ENGINES.items():
            seconds = 1.0 * (slow or {}).get(engine, 1.0)
            latency = LatencyState("m", Metric.E2E, 100, seconds, seconds, None, None, None)
            self.put(engine_state(engine, self.now_ms, latencies=(latency,), covered_ms=10_000, period_ms=1_000))
            for cluster in ("A", "B"):
                near = cluster.lower() == site
                self.put(network_state(cluster, site, 0.002 if near else 0.050, self.now_ms))
        self.put(demand_state("A", 70.0, self.now_ms))
        self.put(demand_state("B", demand_b, self.now_ms))

    def declare(self) -> None:
        self.put(profile(capacity_rps=50.0))
        for engine, site in ENGINES.items():
            self.put(spec(engine, site=site, capacity_rps_per_replica=60.0))

    def positions(self) -> tuple[InputOffsets, ...]:
        return tuple(
            InputOffsets(
                TABLE[role].name,
                tuple(self.read.get((TABLE[role].name, n), 0) for n in range(TABLE[role].partitions)),
            )
            for role in INPUT_ROLES
        )

    def read_anew(self, ends: Mapping[Place, int]) -> None:
        """Forget what was read, and read up to these offsets."""
        self.fold, self.digests, self.read = StateFold(TABLE), LogDigests(), {}
        self.take(ends)

    def take(self, ends: Mapping[Place, int] | None = None) -> None:
        """Read the input topics to their end, or up to these offsets."""
        for role in INPUT_ROLES:
            for n in range(TABLE[role].partitions):
                place = TABLE[role].name, n
                for record in self.logs.get(place, []):
                    end = record.offset + 1 if ends is None else ends.get(place, 0)
                    if self.read.get(place, 0) <= record.offset < end:
                        self.fold.offer(record)
                        self.digests.offer(record)
                        self.read[place] = record.offset + 1

    def tick(self, ends: Mapping[Place, int] | None = None) -> None:
        self.take(ends)
        at_ms = self.now_ms
        problem = assemble(self.fold.view(self.positions()), self.settings, at_ms)
        stamp = TickStamp(self.epoch, self.version + 1, at_ms)
        decided = decide(problem, self.previous, self.settings, Glop(threads=1), stamp, 0)
        assert isinstance(decided, Decided)
        keyframe = at_ms // self.settings.keyframe_ms
        record = replace(
            decided.tick.record,
            build_us=at_ms % 977,
            settings=None if keyframe == self.keyframe else settings_text(self.settings),
            input_digests=self.digests.digests(self.positions()),
        )
        self.keyframe = keyframe
        tick = replace(decided.tick, record=record)
        for _, key, value in logged("", tick, tick.removed):
            self.append((TABLE[SNAPSHOTS].name, 0), key, value)
        self.append((TABLE[DECISIONS].name, 0), record.key, encode(record))
        self.version, self.previous = self.version + 1, tick.snapshot
        self.now_ms += PERIOD_MS

    def new_writer(self) -> None:
        """Another solver takes over: the next epoch begins."""
        self.epoch, self.keyframe = self.epoch + 1, None

    def write(self, folder: Path, ticks: int | None = None, span: Span | None = None) -> Path:
        """Put everything into a folder of history."""
        folder.mkdir(parents=True)
        parts, findings = [], []
        for role, topic in TABLE.items():
            places = sorted(place for place in self.logs if place[0] == topic.name)
            writers = Writers(folder, topic)
            for place in places:
                for record in self.logs[place]:
                    writers.write(record)
            parts += writers.close()
            findings += writers.findings()
            assert role
        count = self.version if ticks is None else ticks
        write_manifest(
            folder, Manifest(span or Span(START_MS, self.now_ms), count, TOPICS, tuple(parts), tuple(findings))
        )
        return folder


def recorded_run(ticks: int = 12) -> Run:
    """Give a run of so many ticks: demand rises, an engine slows, a second writer takes over in the middle."""
    run = Run()
    run.declare()
    for number in range(ticks):
        run.beat(60.0 + 4 * (number % 5), {"engine-b": 3.0} if number > ticks // 2 else None)
        if number == ticks // 2:
            run.new_writer()
        run.tick()
    return run
