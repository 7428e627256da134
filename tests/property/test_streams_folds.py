"""The folds against a brute-force recount, and under every batching, restart and duplication that Kafka may bring."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.check_state import State, check_state
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.histogram import pack, quantile
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, TopicSettings
from headrace.streams.core.demand import fold_demand
from headrace.streams.core.engine import fold_engine
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.network import fold_network
from headrace.streams.core.offline import run_offline
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings(min_coverage=0.0)
PANE, WINDOW, GRACE = SETTINGS.pane_ms, SETTINGS.window_ms, SETTINGS.grace_ms
Fold = Callable[[Any, Any, int, int, StreamsSettings], State]

seconds = st.floats(0.0, 50.0, allow_nan=False).map(lambda s: s if s == 0.0 or s > 1e-6 else 0.0)
# Mostly near one another, on pane bounds and between them, with a jump now and then.
ends = st.one_of(
    st.integers(0, 40).map(lambda i: 1_000 * i),
    st.integers(0, 40_000),
    st.integers(0, 200_000),
)
lengths = st.one_of(st.just(1_000), st.sampled_from((0, 1, 250, 999, 2_500, 15_000)))


@st.composite
def distributions(draw: st.DrawFn) -> tuple[Distribution, ...]:
    names = draw(
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(list(Metric)[1:3])), unique=True, max_size=3)
    )
    found: list[Distribution] = []
    for model, metric in names:
        values = draw(st.lists(seconds, max_size=6))
        zeros, first, counts = pack(values)
        if not draw(st.booleans()):
            zeros, first, counts = 0, 0, ()
        bounds = (min(values), max(values)) if values and draw(st.booleans()) else (None, None)
        found.append(Distribution(model, metric, len(values), math.fsum(values), *bounds, zeros, first, counts))
    return tuple(found)


statuses = st.one_of(
    st.none(),
    st.builds(
        EngineStatus,
        st.sampled_from(Health),
        st.none() | st.integers(0, 9),
        st.none() | st.integers(0, 9),
        st.none() | st.integers(0, 9),
        st.none() | st.floats(0, 99),
        st.none() | st.floats(0, 99),
        st.none() | st.floats(0, 1),
    ),
)


@st.composite
def engine_signals(draw: st.DrawFn) -> EngineSignals:
    end, length = draw(ends), draw(lengths)
    vantage = draw(st.sampled_from((Vantage.ENGINE, Vantage.ENGINE, Vantage.ENGINE, Vantage.UNKNOWN, Vantage.GATEWAY)))
    return EngineSignals("e", "s", vantage, max(0, end - length), end, draw(distributions()), draw(statuses))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    end, length, offered = draw(ends), draw(lengths), draw(st.integers(0, 500))
    rejected = draw(st.integers(0, offered))
    return Demand("c", "m", "default", "s", max(0, end - length), end, offered, rejected, draw(st.integers(0, 9)))


@st.composite
def probes(draw: st.DrawFn) -> NetworkProbe:
    return NetworkProbe("c", "site", "s", draw(ends), draw(st.none() | seconds))


CASES: dict[str, tuple[st.SearchStrategy[Any], Fold, type]] = {
    SIGNALS_ENGINE: (engine_signals(), fold_engine, EngineState),
    SIGNALS_DEMAND: (demands(), fold_demand, DemandState),
    SIGNALS_NETWORK: (probes(), fold_network, NetworkState),
}
roles = pytest.mark.parametrize("role", CASES)


def sequences(role: str) -> st.SearchStrategy[list[Any]]:
    return st.lists(CASES[role][0], min_size=1, max_size=25)


def raw(role: str, signals: Sequence[Any]) -> list[RawRecord]:
    topic = f"headrace.{role}"
    return [
        # Offsets have gaps, as those of a partition with several keys have.
        RawRecord(topic, partition_of(s.key, 8), 3 * i + 1, 300_000 + i, s.key, encode(s))
        for i, s in enumerate(signals)
    ]


def in_batches(role: str, records: Sequence[RawRecord], cuts: Sequence[int], *, restart: bool) -> dict[bytes, bytes]:
    """Fold in batches that end at `cuts`; with `restart`, a new worker that knows the stored bytes alone takes each."""
    stored: dict[bytes, bytes] = {}
    fold = KeyedFold(KINDS[role], SETTINGS, 8)
    bounds = [0, *sorted(set(cuts)), len(records)]
    for start, stop in pairwise(bounds):
        if restart:
            fold = KeyedFold(KINDS[role], SETTINGS, 8)
        stored.update(fold.fold(records[start:stop], stored.get, None).states)
    return stored


@roles
@given(data=st.data())
def test_a_restart_after_every_message_gives_the_same_bytes_as_none(role: str, data: st.DataObject) -> None:
    records = raw(role, data.draw(sequences(role)))
    whole = in_batches(role, records, [], restart=False)
    assert in_batches(role, records, range(len(records)), restart=True) == whole
    assert run_offline(records, SETTINGS, TopicSettings()).encoded == whole


@given(pieces=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 20)), min_size=2, max_size=5), data=st.data())
def test_a_demand_that_leaps_and_falls_back_is_the_same_after_any_restarts(
    pieces: list[tuple[int, int]], data: st.DataObject
) -> None:
    offered = [count for count, length in pieces for _ in range(length)]
    signals = [Demand("c", "m", "default", "s", 1_000 * i, 1_000 * (i + 1), n, 0, 0) for i, n in enumerate(offered)]
    records = raw(SIGNALS_DEMAND, signals)
    whole = in_batches(SIGNALS_DEMAND, records, [], restart=False)
    cuts = data.draw(st.lists(st.integers(0, len(records))))
    assert in_batches(SIGNALS_DEMAND, records, cuts, restart=True) == whole
    assert in_batches(SIGNALS_DEMAND, records, range(len(records)), restart=True) == whole


@roles
@given(data=st.data())
def test_any_batching_gives_the_same_bytes(role: str, data: st.DataObject) -> None:
    records = raw(role, data.draw(sequences(role)))
    cuts = data.draw(st.lists(st.integers(0, len(records))))
    restart = data.draw(st.booleans())
    assert in_batches(role, records, cuts, restart=restart) == in_batches(role, records, [], restart=False)


@roles
@given(data=st.data())
def test_what_kafka_delivers_again_after_a_crash_counts_once(role: str, data: st.DataObject) -> None:
    records = raw(role, data.draw(sequences(role)))
    again: list[RawRecord] = []
    for i in range(len(records)):
        again.append(records[i])
        if data.draw(st.booleans()):
            back = data.draw(st.integers(0, i))
            again.extend(records[back : i + 1])
    assert in_batches(role, again, [], restart=False) == in_batches(role, records, [], restart=False)


@roles
@given(data=st.data())
def test_the_state_is_sound_never_newer_than_its_inputs_and_its_watermark_never_goes_back(
    role: str, data: st.DataObject
) -> None:
    signals, fold = data.draw(sequences(role)), CASES[role][1]
    state: Any = None
    newest, watermark = 0, 0
    for offset, signal in enumerate(signals):
        newest = max(newest, getattr(signal, "period_end_ms", None) or getattr(signal, "at_ms", 0))
        state = fold(state, signal, offset, 0, SETTINGS)
        assert check_state(state) == ()
        assert watermark <= state.last_signal_ms <= newest
        assert state.as_of_ms <= state.last_signal_ms
        watermark = state.last_signal_ms
        assert must(decode(CASES[role][2], encode(state))) == state


def pane_of(end_ms: int) -> int:
    return math.ceil(end_ms / PANE) - 1


def recount(ends_ms: Sequence[int]) -> tuple[list[bool], int]:
    """Say which periods are applied, by the definition of late, and how many are late."""
    applied: list[bool] = []
    watermark: int | None = None
    for end in ends_ms:
        pane_start = pane_of(end) * PANE
        late = watermark is not None and (
            pane_start < watermark - GRACE - PANE or pane_of(end) <= pane_of(watermark) - WINDOW // PANE
        )
        applied.append(not late)
        watermark = end if watermark is None else max(watermark, end)
    return applied, applied.count(False)


def in_window(end_ms: int, watermark: int) -> bool:
    return pane_of(end_ms) > pane_of(watermark) - WINDOW // PANE


@given(sequence=st.lists(engine_signals(), min_size=1, max_size=25))
def test_an_engines_window_equals_a_brute_force_recount(sequence: list[EngineSignals]) -> None:
    state: EngineState | None = None
    for offset, each in enumerate(sequence):
        state = fold_engine(state, each, offset, 0, SETTINGS)
    assert state is not None
    own = [s for s in sequence if s.vantage is not Vantage.GATEWAY]
    applied, late = recount([s.period_end_ms for s in own])
    assert state.late == late
    if not own:
        return
    watermark = max(s.period_end_ms for s in own)
    kept = [s for s, yes in zip(own, applied, strict=True) if yes]
    window = [s for s in kept if in_window(s.period_end_ms, watermark)]
    for latency in state.latencies:
        parts = [d for s in window for d in s.distributions if (d.model, d.metric) == (latency.model, latency.metric)]
        assert latency.count == sum(d.count for d in parts)
        if latency.count:
            assert latency.mean_s == pytest.approx(math.fsum(d.sum_s for d in parts) / latency.count)
        buckets = [0] * 320
        for d in parts:
            for i, count in enumerate(d.bucket_counts):
                buckets[d.first_bucket + 160 + i] += count
        p95 = quantile(0.95, sum(d.zero_count for d in parts), -160, buckets)
        measured = [d for d in parts if d.count]
        if p95 is not None and all(d.max_s is not None for d in measured):
            p95 = min(p95, max(d.max_s or 0.0 for d in measured))
            p95 = max(p95, min(d.min_s or 0.0 for d in measured))
        assert latency.p95_s == p95
    first = (pane_of(watermark) + 1) * PANE - WINDOW
    instants = {ms for s in kept for ms in range(max(s.period_start_ms, first), s.period_end_ms)}
    assert state.coverage == pytest.approx(len(instants) / (watermark - first))


@given(sequence=st.lists(demands(), min_size=1, max_size=25))
@settings(deadline=None)
def test_a_routes_window_equals_a_brute_force_recount(sequence: list[Demand]) -> None:
    state: DemandState | None = None
    for offset, each in enumerate(sequence):
        state = fold_demand(state, each, offset, 0, SETTINGS)
    assert state is not None
    applied, late = recount([s.period_end_ms for s in sequence])
    kept = [s for s, yes in zip(sequence, applied, strict=True) if yes]
    watermark = max(s.period_end_ms for s in sequence)
    first = (pane_of(watermark) + 1) * PANE - WINDOW
    arrived = 0
    for s in kept:
        length = s.period_end_ms - s.period_start_ms
        if length == 0:
            arrived += s.offered if in_window(s.period_end_ms, watermark) else 0
        else:
            inside = max(first, s.period_start_ms)
            left_out = s.offered * (inside - s.period_start_ms) // length
            arrived += s.offered - left_out if s.period_end_ms > first else 0
    instants = {ms for s in kept for ms in range(max(s.period_start_ms, first), s.period_end_ms)}
    assert state.late == late
    assert state.rate_rps == (arrived * 1_000 / len(instants) if instants else None)
    assert state.coverage == pytest.approx(len(instants) / (watermark - first))


@given(sequence=st.lists(probes(), min_size=1, max_size=25))
def test_a_links_window_equals_a_brute_force_recount(sequence: list[NetworkProbe]) -> None:
    state: NetworkState | None = None
    for offset, each in enumerate(sequence):
        state = fold_network(state, each, offset, 0, SETTINGS)
    assert state is not None
    applied, late = recount([p.at_ms for p in sequence])
    watermark = max(p.at_ms for p in sequence)
    window = [p for p, yes in zip(sequence, applied, strict=True) if yes and in_window(p.at_ms, watermark)]
    back = [p.rtt_s for p in window if p.rtt_s is not None]
    assert (state.late, state.count) == (late, len(window))
    assert state.rtt_s == (pytest.approx(math.fsum(back) / len(back)) if back else None)
    assert state.lost_share == pytest.approx(1 - len(back) / len(window))


@given(
    before=st.lists(st.integers(0, 500), max_size=8),
    tick=st.lists(st.integers(0, 500), min_size=2, max_size=5),
    order=st.permutations(range(5)),
)
def test_the_order_of_sources_inside_one_tick_does_not_matter(
    before: list[int], tick: list[int], order: list[int]
) -> None:
    def state_of(last: list[int]) -> DemandState:
        state: DemandState | None = None
        sequence = [(1_000 * (i + 1), n) for i, n in enumerate(before)]
        sequence += [(1_000 * (len(before) + 1), n) for n in last]
        for offset, (end, offered) in enumerate(sequence):
            demand = Demand("c", "m", "default", f"gw{offset}", end - 1_000, end, offered, 0, 0)
            state = fold_demand(state, demand, offset, 0, SETTINGS)
        assert state is not None
        return state

    other = [tick[i] for i in order if i < len(tick)]
    assert state_of(tick) == state_of(other)
