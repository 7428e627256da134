"""Variants over a folder of history, each in a process of its own: played, scored, and written as it goes.

    out/<variant>/snapshots.avro    its snapshots as the solver would have logged them
    out/<variant>/result.json       its settings, how many ticks, and a digest of all its weights

A variant depends on the history and on itself alone, so the result is the same for any number of processes. Where a
stop is asked for, each variant ends where it is: what it has made so far is whole, and says that it is not all.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import xxhash

from headrace.dataplane.settings import DataPlaneSettings
from headrace.replay.core.history import Finding, HistoryError, Span
from headrace.replay.core.play import play, play_recorded, rising
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.recorded import RecordedTick
from headrace.replay.core.routed import SampleFold, sample_of
from headrace.replay.core.variant import Variant
from headrace.replay.runs.pool import Desk, Pool
from headrace.replay.runs.signals import signals_played
from headrace.replay.runs.verification import recorded_of, standing_of
from headrace.replay.score.measured import MeasuredFleet, measured_fleet
from headrace.replay.score.off_policy import OffPolicyEstimate, OffPolicyRefused
from headrace.replay.score.single_requests import SingleRequests
from headrace.replay.score.variant import VariantScorer
from headrace.replay.score.variant_score import VariantScore
from headrace.replay.sources.container import ContainerWriter
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.codec import SchemaSource, decode, encode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.state import EngineState
from headrace.schemas.topics import ROUTED, SNAPSHOTS, STATE_ENGINE
from headrace.solver.core.effective import settings_of
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from headrace.streams.settings import StreamsSettings

TELL_EVERY = 20
KEYFRAME_TICKS = 600
"""A variant's log has every route this often, so that a reader may begin anywhere near."""
RESULT = "result.json"
LOG = "snapshots.avro"
_NOT_WRITTEN = ("score", "off_policy")
"""What the comparison has, beside that of the others."""


@dataclass(frozen=True, slots=True)
class Job:
    """One variant over one folder; `variant` None plays what was recorded.

    `role` says whose recorded ticks: the live solver's, or a shadow's. With `streams` the signals are folded anew by
    these settings, and ticks are the variant's own. `dataplane` says how large the data planes' tables are. `span` is
    the part of the range to play, None all of it. `guessed`: `known` is not what history tells of this run.
    """

    folder: Path
    name: str
    variant: Variant | None
    known: SolverSettings
    out: Path
    measured: MeasuredFleet
    role: str = SNAPSHOTS
    streams: StreamsSettings | None = None
    registry: SchemaSource | None = None
    folding: int = 0
    dataplane: DataPlaneSettings = dataclasses.field(default_factory=DataPlaneSettings)
    span: Span | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """What a variant's run came to.

    Attributes:
        name: of the variant.
        configuration: every setting that it ran by; empty where history does not tell.
        ticks: how many it played.
        same: how many of them have the recorded weights, route for route.
        digest: over all its weights, in order: the same digest, the same weights.
        complete: whether it came to the range's end.
        score: how users would have fared; None where nothing was played.
        findings: what it could not read.
        off_policy: what recorded requests tell of it; None where history has none.
    """

    name: str
    configuration: dict[str, Any]
    ticks: int
    same: int
    digest: str
    complete: bool
    score: VariantScore | None
    findings: tuple[Finding, ...] = ()
    off_policy: OffPolicyEstimate | OffPolicyRefused | None = None


def run_variants(
    jobs: Sequence[Job], processes: int, told: Callable[[int], None], asked: Callable[[], bool]
) -> list[Ran]:
    """Run every job in at most `processes` beside each other; gives their results in the order of the jobs.

    Where there are more processes than jobs, those that fold signals anew have the others fold for them.
    """
    beside = max(1, min(processes, len(jobs)))
    shared = [dataclasses.replace(job, folding=max(0, processes // beside - 1)) for job in jobs]
    return Pool(run_variant, told, asked).run(shared, processes)


def run_variant(job: Job, desk: Desk) -> Ran:
    """Play one variant, score it, and write down what it decided."""
    recorded: dict[int, str] = {}
    findings: list[Finding] = []
    sample = _sample(job)
    single = SingleRequests(sample.requests(), job.dataplane) if sample is not None else None
    scorer, digest = VariantScorer(job.name, measured=job.measured), xxhash.xxh3_128()
    ticks, same, untold, complete = 0, 0, 0, True
    with _Log(job.out / folder_name(job.name) / LOG) as log:
        for tick in rising(_played(job, recorded, findings)):
            if desk.asked():
                complete = False
                break
            scorer.add(tick)
            if single is not None:
                single.add(tick)
            log.add(tick)
            commit = tick.snapshot.commit
            digest.update(f"{commit.tick_ms} {commit.digest}\n".encode())
            ticks, untold = ticks + 1, untold + 1
            same += recorded.get(commit.tick_ms) == commit.digest
            if untold == TELL_EVERY:
                desk.tell(untold)
                untold = 0
    desk.tell(untold)
    score = _finished(scorer, single) if ticks else None
    settings = job.known if job.variant is None else job.variant.settings
    ran = Ran(
        job.name,
        {} if job.guessed else dataclasses.asdict(settings),
        ticks,
        same,
        digest.hexdigest(),
        complete,
        score,
        tuple(dict.fromkeys((*findings, *(() if sample is None else sample.findings())))),
        None if single is None or not ticks else single.off_policy,
    )
    _write_result(job.out / folder_name(job.name) / RESULT, ran)
    return ran


def _sample(job: Job) -> SampleFold | None:
    """Read the single requests of a job's history; None where it has none."""
    history = HistoryFolder(job.folder)
    places = history.places(ROUTED)
    if not places:
        return None
    records = (record for place in places for record in history.read(place))
    return sample_of(records, job.span or history.span, job.registry)


def _finished(scorer: VariantScorer, single: SingleRequests | None) -> VariantScore:
    score = scorer.finish()
    if single is None:
        return score
    single.finish()
    return dataclasses.replace(score, sessions=single.sessions)


def recorded_settings(history: HistoryFolder, role: str = SNAPSHOTS, span: Span | None = None) -> SolverSettings | None:
    """Give the settings in force at the first tick that the live solver, or a shadow, recorded; None if not told."""
    for tick in recorded_of(history, role).ticks(span or history.span):
        return None if tick.settings_text is None else settings_of(tick.settings_text)
    return None


def measured_in(
    history: HistoryFolder, registry: SchemaSource | None = None, span: Span | None = None
) -> MeasuredFleet:
    """Give what the engines' states of the range, or of a part of it, show of the fleet."""
    within = span or history.span
    return measured_fleet(_engine_states(history, within, registry), within.from_ms)


def folder_name(name: str) -> str:
    """Give a variant's name as a folder may be called."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", name)


def _engine_states(history: HistoryFolder, span: Span, registry: SchemaSource | None) -> Iterator[EngineState]:
    for place in history.places(STATE_ENGINE):
        for record in history.read(place):
            if record.timestamp_ms in span and record.value is not None:
                state = decode(EngineState, record.value, record.headers, registry)
                if not isinstance(state, Rejected):
                    yield state


def _played(job: Job, recorded: dict[int, str], findings: list[Finding]) -> Iterator[PlayedTick]:
    """Play a job; what was found on the way is in `findings` when the last tick has been given."""
    if job.streams is not None and job.variant is not None:
        played = signals_played(
            job.folder, job.variant, job.streams, job.registry, findings=findings, processes=job.folding
        )
        yield from (tick for tick in played if job.span is None or tick.now_ms in job.span)
        return
    history = HistoryFolder(job.folder)
    standing = standing_of(history, job.registry)
    read = recorded_of(history, job.role)
    ticks = _noted(read.ticks(job.span or history.span), recorded)
    if job.variant is None:
        yield from play_recorded(ticks, standing, job.known)
    else:
        yield from play(job.variant, ticks, standing, Glop(threads=1))
    findings += (*history.findings, *read.findings(), *standing.findings())


def _noted(ticks: Iterator[RecordedTick], recorded: dict[int, str]) -> Iterator[RecordedTick]:
    """Keep the digest of the newest recorded tick, for whoever wants to know whether a variant's is the same."""
    for tick in ticks:
        commit = tick.snapshot.commit
        recorded.pop(next(iter(recorded), 0), None) if len(recorded) > KEYFRAME_TICKS else None
        recorded[commit.tick_ms] = commit.digest
        yield tick


class _Log:
    """A variant's snapshots as a log."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise HistoryError(f"{path} is there already; a run writes into a folder of its own")
        self._place = "snapshots", 0
        self._writer = ContainerWriter(path, self._place)
        self._offset = 0
        self._ticks = 0

    def __enter__(self) -> "_Log":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, tick: PlayedTick) -> None:
        """Write what a tick changed, or every route at a keyframe, and the commit last."""
        commit = tick.snapshot.commit
        routes = {route.key: route for route in tick.snapshot.routes}
        keys = routes.keys() if self._ticks % KEYFRAME_TICKS == 0 else {key.encode() for key in commit.changed}
        for key in sorted(keys):
            self._put(commit.tick_ms, key, encode(routes[key]) if key in routes else None)
        self._put(commit.tick_ms, commit.key, encode(commit))
        self._ticks += 1

    def _put(self, at_ms: int, key: bytes, value: bytes | None) -> None:
        self._writer.write(RawRecord(*self._place, self._offset, at_ms, key, value))
        self._offset += 1


def _write_result(path: Path, ran: Ran) -> None:
    plain = {
        field.name: getattr(ran, field.name) for field in dataclasses.fields(ran) if field.name not in _NOT_WRITTEN
    }
    path.write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
