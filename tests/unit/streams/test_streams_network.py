import math
from dataclasses import replace

import pytest

from headrace.schemas.check_state import check_state
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.series import Lineage
from headrace.schemas.signals import NetworkProbe
from headrace.schemas.state import NetworkState
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.network import NetworkAccumulator, fold_network
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()


def probe(at_ms: int, rtt_s: float | None) -> NetworkProbe:
    return NetworkProbe("c", "site", "s", at_ms, rtt_s)


def folded(*sequence: NetworkProbe) -> NetworkState:
    accumulator = NetworkAccumulator("c", "site", SETTINGS)
    for offset, each in enumerate(sequence):
        accumulator.apply(each, offset, each.at_ms + 5)
    state = accumulator.state()
    assert check_state(state) == ()
    return state


def test_the_round_trip_is_the_mean_of_the_windows_probes_that_came_back() -> None:
    state = folded(probe(1_000, 0.1), probe(2_000, None), probe(3_000, 0.3))
    assert state.rtt_s == pytest.approx(0.2)
    assert state.count == 3
    assert state.lost_share == pytest.approx(1 / 3)


def test_a_link_of_which_no_probe_came_back_has_no_round_trip() -> None:
    state = folded(probe(1_000, None))
    assert (state.rtt_s, state.smoothed_s, state.lost_share) == (None, None, 1.0)


def test_lost_probes_leave_the_smoothed_round_trip_as_it_was() -> None:
    state = folded(probe(1_000, 0.1), *(probe(1_000 * i, None) for i in range(2, 20)))
    assert (state.rtt_s, state.smoothed_s, state.lost_share) == (None, 0.1, 1.0)


def test_worse_is_believed_fast() -> None:
    assert folded(probe(1_000, 0.1), probe(2_000, 0.2)).smoothed_s == pytest.approx(0.1 + 0.1 * (1 - math.exp(-0.5)))


def test_late_and_duplicates_are_not_applied() -> None:
    state = folded(probe(10_000, 0.1), probe(4_000, 0.9))
    assert (state.late, state.count, state.last_signal_ms) == (1, 1, 10_000)
    assert fold_network(state, probe(10_000, 0.1), 0, 0, SETTINGS) == state


def read_at(at_ms: int, rtt_s: float, offset: int, partition: int = 0) -> NetworkProbe:
    return replace(probe(at_ms, rtt_s), lineage=Lineage("team.probes", partition, offset, 0, "h"))


def test_a_probe_that_a_bridge_delivers_again_counts_once_after_a_restart_too() -> None:
    first, second = read_at(1_000, 0.1, 7), read_at(2_000, 0.3, 8)
    state = folded(first, second, first, second)
    assert (state.count, state.rtt_s) == (2, pytest.approx(0.2))
    again = must(decode(NetworkState, encode(state)))
    for offset, each in enumerate((first, second, read_at(2_500, 0.5, 3, partition=1)), 10):
        again = fold_network(again, each, offset, each.at_ms, SETTINGS)
    assert (again.count, again.rtt_s) == (3, pytest.approx(0.3))
    assert check_state(again) == ()


def test_the_bridge_says_of_a_probe_where_it_read_it() -> None:
    record = RawRecord("team.probes", 3, 9, 1_000, None, encode(probe(1_000, 0.1)))
    (passed,) = Translator(load_preset("vllm_v1"), DecodeOptions("avro")).translate(record, 2_000).signals
    assert passed.lineage is not None
    assert (passed.lineage.topic, passed.lineage.partition, passed.lineage.offset) == ("team.probes", 3, 9)


def test_panes_of_another_hand_begin_a_new_window() -> None:
    state = folded(probe(1_000, 0.1))
    strange = replace(state, panes=b"\x07")
    assert fold_network(strange, probe(2_000, 0.4), 1, 0, SETTINGS).rtt_s == 0.4


def test_the_first_state_is_that_of_its_one_probe() -> None:
    assert fold_network(None, probe(1_000, 0.1), 0, 7, SETTINGS).signal_timestamp_ms == 7
