"""Load tests out of a topic of engine states or signals, as far back as it goes or from an instant on."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from headrace.infra.configuration.config import Config
from headrace.infra.topic_readers.latest import read_latest
from headrace.infra.topic_readers.to_end import read_to_end
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.signals import EngineSignals
from headrace.schemas.state import EngineState
from headrace.schemas.topics import FLEET, PROFILES, topic_table
from headrace.solver.core.profile.load_test import LoadTest
from headrace.solver.core.profile.windows import WindowFold

READ_TIMEOUT_S = 300.0
R = TypeVar("R", bound=Record)


def read_topic(
    config: Config, topic: str, from_ms: int | None, say: Callable[[str], None], timeout_s: float = READ_TIMEOUT_S
) -> tuple[LoadTest, ...]:
    """Give the load tests of a topic, one per profile of the fleet.

    Args:
        config: how to reach the broker, and what the topics of the fleet are called.
        topic: one that holds EngineState or EngineSignals.
        from_ms: records from then on; None for all there are.
        say: is told how many windows were left out, and why.
        timeout_s: how long it may take to read.

    Raises:
        InvalidInputError: it holds no window that can be used; how many there were, and what is wrong with them.
        HeadraceError: the broker does not answer, a topic is not there, or it was not read to its end in time.
    """
    table = topic_table(config.topics)
    specs = _known(config, table[FLEET].name, EngineSpec)
    profiles = _known(config, table[PROFILES].name, LatencyProfile)
    fold = WindowFold(
        {spec.engine_id: spec for spec in specs.values()},
        {profile.profile_id: profile for profile in profiles.values()},
        topic,
    )
    for record in read_to_end(config.kafka, topic, from_ms, timeout_s=timeout_s):
        _offer(fold, record)
    tests = fold.tests()
    left_out = tuple(f"{count} windows {why}" for why, count in sorted(fold.left_out.items()))
    if not tests:
        raise InvalidInputError(topic, left_out or ("it holds no record: is `headrace streams` running?",))
    for sentence in left_out:
        say(f"left out: {sentence}")
    return tests


def _offer(fold: WindowFold, record: RawRecord) -> None:
    if record.value is None:
        return
    state = decode(EngineState, record.value, record.headers)
    if not isinstance(state, Rejected):
        fold.offer_state(state)
        return
    signals = decode(EngineSignals, record.value, record.headers)
    if isinstance(signals, Rejected):
        fold.left_out["that are neither EngineState nor EngineSignals"] += 1
    else:
        fold.offer_signals(signals)


def _known(config: Config, topic: str, kind: type[R]) -> Mapping[bytes, R]:
    latest = read_latest(config.kafka, topic)
    found = {key: decode(kind, record.value, record.headers) for key, record in latest.items()}
    return {key: record for key, record in found.items() if not isinstance(record, Rejected)}
