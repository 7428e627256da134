"""Whether a solver is there to obey an override: the newest snapshot is no older than some ticks."""

from headrace.infra.topic_readers.latest import read_latest
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.errors import HeadraceError
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.topics import WEIGHTS, TopicSettings, topic_table
from headrace.schemas.weights import SnapshotCommit

MOST_TICKS = 10
"""A standby takes over within fewer."""
MEANWHILE = "data planes route by the weights that they hold, and this counts once one runs"


def nobody_obeys(kafka: KafkaSettings, topics: TopicSettings, now_ms: int) -> str | None:
    """Say that no solver seems to run, by the newest snapshot, or that it cannot be told; None where one does."""
    try:
        record = read_latest(kafka, topic_table(topics)[WEIGHTS].name).get(COMMIT_KEY)
    except HeadraceError as error:
        return f"whether a solver runs cannot be told: {error}"
    commit = None if record is None else decode(SnapshotCommit, record.value, record.headers)
    return silence_of(None if isinstance(commit, Rejected) else commit, now_ms)


def silence_of(commit: SnapshotCommit | None, now_ms: int) -> str | None:
    """Say that no solver seems to run, given the newest commit; None where it is young enough."""
    if commit is None:
        return f"no solver seems to run, there is no snapshot: {MEANWHILE}"
    age_ms = now_ms - commit.tick_ms
    if age_ms <= MOST_TICKS * commit.period_ms:
        return None
    newest = f"the newest snapshot (version {commit.version}) is {age_ms / 1000:.0f} s old"
    return f"no solver seems to run, {newest}: {MEANWHILE}"
