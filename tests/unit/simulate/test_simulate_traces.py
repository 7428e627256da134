"""Public trace formats, a few lines each; and how a trace becomes the arrivals of a fleet."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fleet_inputs import three_regions
from headrace.infra.simulate.trace_arrivals import with_trace
from headrace.infra.traces import read_trace, trace_formats
from headrace.infra.traces.request_trace import RequestTrace
from headrace.schemas.errors import InvalidInputError

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
MOONCAKE = """{"timestamp": 0, "input_length": 10, "output_length": 2, "hash_ids": [0, 7]}
{"timestamp": 3000, "input_length": 20, "output_length": 4, "hash_ids": [0, 7, 8]}
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,GPT-4,10,2,12,API log
9,GPT-4,20,0,20,API log
"""
QWEN = """{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 10, "output_length": 2, "turn": 1}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 4.5, "input_length": 20, "output_length": 4, "turn": 2}
"""
SERVEGEN = """model,t_s,rate_rps,active_clients,cv_weighted
m,0,40,3,1.2
m,600,80,3,1.0
other,0,0,0,
"""
FILES = {
    "azure": ("a.csv", AZURE),
    "mooncake": ("m.jsonl", MOONCAKE),
    "burstgpt": ("b.csv", BURSTGPT),
    "qwen": ("q.jsonl", QWEN),
    "servegen": ("s.csv", SERVEGEN),
}


@pytest.mark.parametrize("form", sorted(FILES))
def test_each_format_is_read_plain_and_gzipped(form: str, tmp_path: Path) -> None:
    name, text = FILES[form]
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    one, two = read_trace(form, plain), read_trace(form, packed)
    assert one.t_s.tolist() == two.t_s.tolist()
    assert one.t_s[0] == 0.0
    assert np.all(np.diff(one.t_s) >= 0.0)
    assert np.all(one.output_tokens >= 1.0)
    if form != "servegen":
        assert len(one.t_s) == 2
        assert one.t_s[1] == pytest.approx({"azure": 4.3146, "mooncake": 3.0}.get(form, 4.0), abs=0.01)


def test_every_format_is_tested_here() -> None:
    assert set(trace_formats()) == set(FILES)


def test_requests_of_one_conversation_share_a_session(tmp_path: Path) -> None:
    for form in ("mooncake", "qwen"):
        name, text = FILES[form]
        (tmp_path / name).write_text(text)
        sessions = read_trace(form, tmp_path / name).sessions
        assert sessions is not None
        assert sessions[0] == sessions[1]


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("Timestamp,Request tokens,Response tokens\n5,ten,2\n6,1,-3\n")
    with pytest.raises(InvalidInputError) as error:
        read_trace("burstgpt", tmp_path / "b.csv")
    assert [p.partition(":")[0] for p in error.value.problems] == ["line 2", "line 3"]
    (tmp_path / "c.csv").write_text("When,What\n1,2\n")
    with pytest.raises(InvalidInputError, match="Timestamp, Request tokens, Response tokens are missing"):
        read_trace("burstgpt", tmp_path / "c.csv")
    with pytest.raises(InvalidInputError, match="known are azure, burstgpt"):
        read_trace("openai", None)
    with pytest.raises(InvalidInputError, match="name its file"):
        read_trace("mooncake", None)


def test_a_qwen_trace_is_not_read_as_mooncake_s_whose_clock_is_in_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(QWEN.replace('"turn"', '"hash_ids": [1, 2], "turn"'))
    with pytest.raises(InvalidInputError, match="line 1: has a chat_id, which only Qwen traces have: read it as qwen"):
        read_trace("mooncake", tmp_path / "q.jsonl")
    assert len(read_trace("qwen", tmp_path / "q.jsonl").t_s) == 2


def test_servegen_draws_the_rates_it_is_given(tmp_path: Path) -> None:
    name, text = FILES["servegen"]
    (tmp_path / name).write_text(text)
    found = read_trace("servegen", tmp_path / name)
    # 40 and 80 RPS, scaled to a mean of 50, ten seconds each.
    first = np.count_nonzero(found.t_s < 10.0)
    assert first == pytest.approx(333, rel=0.2)
    assert len(found.t_s) - first == pytest.approx(667, rel=0.2)


def test_one_client_that_sends_all_at_once_does_not_make_a_window_of_servegen_s_an_instant(tmp_path: Path) -> None:
    rows = ["m-large,0,100.0,40,55.664", "m-large,600,100.0,40,2.0"]
    (tmp_path / "s.csv").write_text("\n".join(["model,t_s,rate_rps,active_clients,cv_weighted", *rows]) + "\n")
    t_s = read_trace("servegen", tmp_path / "s.csv").t_s
    per_second = np.bincount(t_s.astype(int), minlength=20)
    # 50 RPS in the mean; drawn by 55.664, nearly all of a window fell into one second.
    assert per_second.max() < 250
    assert np.count_nonzero(per_second) > 15


def a_trace(sessions: bool = True) -> RequestTrace:  # noqa: FBT001, FBT002 - a test's own
    t_s = np.linspace(0.0, 99.0, 100)
    tokens = np.tile([10.0, 30.0], 50)
    return RequestTrace("t", "a test", t_s, tokens, tokens, np.arange(100) // 2 if sessions else None)


def test_a_trace_is_repeated_to_the_wanted_load_in_its_own_time() -> None:
    scenario = with_trace(three_regions(), a_trace(), load=0.5, seconds=50.0, seed=1)
    dice = np.random.default_rng(1)
    total = 0
    for cluster in scenario.clusters:
        arrivals = list(scenario.arrivals(cluster, scenario.mean_tokens, dice))
        total += len(arrivals)
        assert sum(a.gap for a in arrivals) / cluster.rate_rps <= 50.0
        share = len(arrivals) / (140.0 * 50.0)
        assert share == pytest.approx(cluster.rate_rps / 140.0, abs=0.1)
    # Half of 280 RPS for 50 s.
    assert total == pytest.approx(7000, rel=0.02)


def test_a_conversation_stays_in_one_cluster_and_keeps_the_time_between_its_turns() -> None:
    scenario = with_trace(three_regions(), a_trace(), load=0.05, seconds=100.0, seed=1)
    seen: dict[str, set[str]] = {}
    for cluster in scenario.clusters:
        for arrival in scenario.arrivals(cluster, scenario.mean_tokens, np.random.default_rng(1)):
            seen.setdefault(arrival.session, set()).add(cluster.name)
    assert all(len(clusters) == 1 for clusters in seen.values())


def test_without_sessions_four_requests_in_five_continue_one() -> None:
    scenario = with_trace(three_regions(), a_trace(sessions=False), load=0.5, seconds=100.0, seed=1)
    cluster = scenario.clusters[1]
    arrivals = list(scenario.arrivals(cluster, scenario.mean_tokens, np.random.default_rng(1)))
    assert 0.15 < len({a.session for a in arrivals}) / len(arrivals) < 0.6


def test_too_many_requests_are_refused_with_the_number() -> None:
    with pytest.raises(InvalidInputError, match="at most 20,000,000"):
        with_trace(three_regions(), a_trace(), load=0.5, seconds=1e6, seed=1)
