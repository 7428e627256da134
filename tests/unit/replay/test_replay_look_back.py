"""An export reads an input topic from as little before its range as holds the newest record of every key."""

from collections.abc import Callable, Iterable

import pytest

from headrace.replay.core.history import Span
from headrace.replay.sources.bounds import Bounds
from headrace.replay.sources.look_back import LOOK_BACK_MS, Proof
from headrace.schemas.codec import decode, must
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DECISIONS, SNAPSHOTS, STATE_ENGINE
from headrace.schemas.weights import SnapshotCommit
from headrace.solver.core.inputs.state_view import INPUT_ROLES
from replay_history import START_MS, TABLE, Run
from solver_inputs import demand_state, engine_state, network_state

STATES = TABLE[STATE_ENGINE].name
HOUR_MS = 3_600_000


def begin_ms(run: Run, span: Span, *, ticks: bool = True) -> tuple[int | None, list[int]]:
    """Where the engines' states are read from, and every instant from which they were looked at."""
    bounds, looked = Bounds(span), list[int]()
    for record in run.logs[TABLE[SNAPSHOTS].name, 0]:
        if ticks and record.key == COMMIT_KEY and record.timestamp_ms in span:
            bounds.add(must(decode(SnapshotCommit, record.value)))
    proof = Proof(bounds)
    assert list(proof.followed(run.logs[TABLE[DECISIONS].name, 0])) == run.logs[TABLE[DECISIONS].name, 0]

    def read(from_ms: int, is_past: Callable[[RawRecord], bool]) -> Iterable[RawRecord]:
        looked.append(from_ms)
        for (topic, _), log in run.logs.items():
            if topic == STATES:
                yield from (each for each in log if each.timestamp_ms >= from_ms and not is_past(each))

    return proof.begin_ms(STATES, INPUT_ROLES.index(STATE_ENGINE), read), looked


def run_with_an_engine_silent_for(silent_ms: int) -> tuple[Run, Span]:
    run = Run()
    run.declare()
    run.put(engine_state("engine-a", START_MS))
    run.now_ms += silent_ms
    begin = run.now_ms
    for _ in range(3):
        for engine in ("engine-b", "engine-c"):
            run.put(engine_state(engine, run.now_ms))
        for cluster in ("A", "B"):
            run.put(demand_state(cluster, 40.0, run.now_ms))
            for site in ("a", "b", "c"):
                run.put(network_state(cluster, site, 0.002, run.now_ms))
        run.tick()
    return run, Span(begin, run.now_ms)


@pytest.mark.parametrize(
    ("silent_ms", "look_back_ms", "looks"),
    [(60_000, LOOK_BACK_MS[0], 1), (HOUR_MS, LOOK_BACK_MS[1], 2), (3 * HOUR_MS, None, 2)],
)
def test_a_topic_is_read_from_no_further_back_than_every_key_needs(
    silent_ms: int, look_back_ms: int | None, looks: int
) -> None:
    run, span = run_with_an_engine_silent_for(silent_ms)
    wanted = None if look_back_ms is None else span.from_ms - look_back_ms
    found, looked = begin_ms(run, span)
    assert (found, len(looked)) == (wanted, looks)


def test_without_ticks_the_second_look_is_enough() -> None:
    run, span = run_with_an_engine_silent_for(HOUR_MS)
    assert begin_ms(run, span, ticks=False) == (span.from_ms - LOOK_BACK_MS[-1], [])
