"""Signals folded anew come to the states that live workers write, and a variant ticks over them as it likes."""

from dataclasses import replace
from pathlib import Path

from headrace.replay.core.history import Span
from headrace.replay.core.merge import merged
from headrace.replay.core.play_signals import SETTLE_MS, SignalsView
from headrace.replay.core.refold import Refold
from headrace.replay.core.signals_fold import SignalsFold
from headrace.replay.core.variant import parse_variants
from headrace.replay.runs.signals import signals_played
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, STATE_OF
from headrace.solver.core.inputs.state_view import StateFold, StateView, without_window
from headrace.solver.settings import SolverSettings
from headrace.streams.core.offline import run_offline
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from replay_history import ENGINES, START_MS, TABLE, TOPICS, Run
from replay_signals import signals
from solver_inputs import spec

STREAMS = StreamsSettings()
SECONDS = 12


FOREVER_MS = 1 << 62


class Folded:
    """A fold and the view of what it sees."""

    def __init__(self) -> None:
        self.fold = SignalsFold(TABLE, {role: Refold(TABLE[role], STREAMS) for role in STATE_OF}, StateFold(TABLE))
        self.take = self.fold.take
        self._view = SignalsView(StateFold(TABLE))

    def view(self) -> StateView:
        return self._view.take(self.fold.seen(FOREVER_MS))


def signal_run() -> Run:
    run = Run()
    run.declare()
    role = {EngineSignals: SIGNALS_ENGINE, Demand: SIGNALS_DEMAND, NetworkProbe: SIGNALS_NETWORK}
    for second in range(SECONDS):
        run.now_ms = START_MS + 1000 * (second + 1)
        for signal in signals(second):
            topic = TABLE[role[type(signal)]]
            run.append((topic.name, partition_of(signal.key, topic.partitions)), signal.key, encode(signal))
    return run


def all_records(run: Run) -> list[RawRecord]:
    return list(merged(run.logs.values()))


def test_folded_anew_a_key_has_the_state_that_a_live_worker_writes() -> None:
    run = signal_run()
    seen = Folded()
    for number, record in enumerate(all_records(run)):
        seen.take(record)
        if number % 17 == 0:
            seen.view()
    view = seen.view()
    live = run_offline(all_records(run), STREAMS, TOPICS, set(view.specs)).states
    ours = {**view.engines, **view.demands, **view.links}
    assert len(ours) == 3 + 2 + 6
    assert ours == {key: without_window(state) for key, state in live.items()}


def test_a_recorded_state_is_gone_on_from_and_its_signals_count_once() -> None:
    run = signal_run()
    records = [r for r in all_records(run) if r.topic == TABLE[SIGNALS_ENGINE].name]
    half = len(records) // 2
    fleet = {engine.encode() for engine in ENGINES}
    before = run_offline(records[:half], STREAMS, TOPICS, fleet).states
    fold = Refold(TABLE[SIGNALS_ENGINE], STREAMS)
    fold.begin(before)
    fold.take(records[half - 5 :], fleet)  # the last five are in the recorded states already
    whole = run_offline(records, STREAMS, TOPICS, fleet).states
    assert fold.told() == {key: replace(state, panes=b"") for key, state in whole.items()}


def test_an_engine_that_left_the_fleet_begins_anew_when_it_comes_back() -> None:
    run = signal_run()
    seen = Folded()
    for record in all_records(run):
        seen.take(record)
    assert b"engine-a" in seen.view().engines
    gone = run.logs[next(place for place in run.logs if "fleet" in place[0])][0]
    seen.take(replace(gone, offset=99, key=b"engine-a", value=None))
    assert b"engine-a" not in seen.view().engines
    seen.take(replace(gone, offset=100, key=b"engine-a", value=encode(spec("engine-a", site="a"))))
    late = [r for r in all_records(run) if r.key == b"engine-a" and r.topic == TABLE[SIGNALS_ENGINE].name][-1]
    seen.take(replace(late, offset=500))
    assert seen.view().engines[b"engine-a"].latencies[0].count == 4


def test_a_variant_ticks_over_signals_by_its_own_period(tmp_path: Path) -> None:
    run = signal_run()
    folder = run.write(tmp_path / "h", ticks=0, span=Span(START_MS, START_MS + 1000 * SECONDS))
    base = SolverSettings(period_ms=1_000)
    slow, quick = parse_variants(("lp", "quick=lp:period_ms=500"), (), base)
    ticks = list(signals_played(folder, slow, STREAMS))
    assert [tick.now_ms - START_MS for tick in ticks] == list(range(SETTLE_MS, 1000 * SECONDS, 1_000))
    assert len(list(signals_played(folder, quick, STREAMS))) == 2 * len(ticks)
    assert sum(row.demand_rps for row in ticks[-1].problem.rows) > 80.0
    assert ticks[-1].snapshot.commit.version == len(ticks)
    again = list(signals_played(folder, slow, STREAMS))
    assert [t.snapshot.commit.digest for t in again] == [t.snapshot.commit.digest for t in ticks]
