"""Puts a worker together from settings: the real topics, group, pen and linear solver behind the loop's ports."""

from functools import partial

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import SchemaSource
from headrace.schemas.log import Log
from headrace.schemas.metric_table import Counts, NoCounts
from headrace.schemas.topics import DECISIONS, SHADOW, SNAPSHOTS, WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import SnapshotMode
from headrace.solver.clocks import stop_watch_us, wall_clock_ms
from headrace.solver.complaints import Complaints
from headrace.solver.core.inputs.state_view import INPUT_ROLES, StateFold
from headrace.solver.glop import Glop
from headrace.solver.leadership import GroupLeadership, SoleLeadership
from headrace.solver.ports import Ports
from headrace.solver.publish import SnapshotWriter
from headrace.solver.reach import missing
from headrace.solver.settings import SolverSettings
from headrace.solver.shadow import ShadowWriter
from headrace.solver.worker import SolverWorker

_WRITTEN = (WEIGHTS, DECISIONS, SNAPSHOTS)


def make_worker(
    kafka: KafkaSettings,
    topics: TopicSettings,
    settings: SolverSettings,
    log: Log,
    registry: SchemaSource | None = None,
    counts: Counts | None = None,
) -> SolverWorker:
    """Give a worker over these topics; nothing is connected before its first step.

    Args:
        kafka: how to reach Kafka.
        topics: names of the topics.
        settings: the solver's.
        log: where it says what it does.
        registry: looks up the schemas of records in Confluent framing, where there are any.
        counts: takes what it counts of itself.

    Raises:
        InvalidInputError: the topic names cannot be used.
    """
    table = topic_table(topics)
    complain = Complaints(partial(_tell, log), wall_clock_ms).add
    weights = table[WEIGHTS].name
    return SolverWorker(
        Ports(
            inputs=CompactedReader(kafka, [table[role].name for role in INPUT_ROLES], on_error=complain),
            leadership=GroupLeadership(kafka, weights, settings.leader_session_ms, complain)
            if settings.leader_election
            else SoleLeadership(),
            writer=SnapshotWriter(kafka, table, wall_clock_ms, on_error=complain),
            lp=Glop(settings.threads),
            log=log,
            now_ms=wall_clock_ms,
            elapsed_us=stop_watch_us,
            missing=partial(
                missing, kafka, [table[role].name for role in (*INPUT_ROLES, WEIGHTS, DECISIONS, SNAPSHOTS)]
            ),
            counts=counts or NoCounts(),
        ),
        StateFold(table, registry),
        settings,
    )


def make_shadow(
    kafka: KafkaSettings,
    topics: TopicSettings,
    settings: SolverSettings,
    log: Log,
    registry: SchemaSource | None = None,
    counts: Counts | None = None,
) -> SolverWorker:
    """Give a worker that decides as `make_worker`'s would by these settings, and writes to `shadow` alone.

    Raises:
        InvalidInputError: the topic names cannot be used.
    """
    table = topic_table(topics)
    complain = Complaints(partial(_tell, log), wall_clock_ms).add
    return SolverWorker(
        Ports(
            inputs=CompactedReader(kafka, [table[role].name for role in INPUT_ROLES], on_error=complain),
            leadership=SoleLeadership(),
            writer=ShadowWriter(kafka, table, wall_clock_ms, on_error=complain),
            lp=Glop(settings.threads),
            log=log,
            now_ms=wall_clock_ms,
            elapsed_us=stop_watch_us,
            missing=partial(missing, kafka, [table[role].name for role in (*INPUT_ROLES, WEIGHTS, SHADOW)]),
            counts=counts or NoCounts(),
        ),
        StateFold(table, registry),
        settings,
        SnapshotMode.SHADOW,
    )


def _tell(log: Log, sentence: str, held_back: int) -> None:
    log.warning("the broker does not answer as it should", said=sentence, held_back=held_back)
