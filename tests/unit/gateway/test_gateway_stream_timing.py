"""Events out of bytes, and latency out of events."""

import json
import re
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.infra.gateway.core.event_lines import EventSplitter
from headrace.infra.gateway.core.stream_timing import Ending, StreamLatency, StreamTiming

LIMIT = 10_000


def event(document: object) -> bytes:
    return b"data: " + orjson.dumps(document) + b"\n\n"


def delta(**fields: Any) -> bytes:  # noqa: ANN401 - a delta's fields are of many shapes
    return event({"choices": [{"index": 0, "delta": fields}]})


ROLE = delta(role="assistant", content="")
TOKEN = delta(content="a")
END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
DONE = b"data: [DONE]\n\n"


def split(*chunks: bytes, limit: int = LIMIT) -> list[bytes]:
    splitter = EventSplitter(limit)
    return [payload for chunk in chunks for payload in splitter.feed(chunk)]


def test_an_event_is_its_data_lines() -> None:
    assert split(b"data: a\n\ndata:b\n\n") == [b"a", b"b"]
    assert split(b": comment\nevent: x\nid: 1\ndata: a\ndata: b\nretry: 5\n\n") == [b"a\nb"]
    assert split(b"\n\n\nevent: nothing\n\n") == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_three_ways(end: bytes) -> None:
    assert split((b"data: a#data: b##data: c##" + b": more").replace(b"#", end)) == [b"a\nb", b"c"]


def test_an_event_is_not_complete_before_its_empty_line() -> None:
    assert split(b"data: a") == split(b"data: a\n") == []
    splitter = EventSplitter(LIMIT)
    assert splitter.between_events
    splitter.feed(b"data: a\n")
    assert not splitter.between_events
    splitter.feed(b"\n")
    assert splitter.between_events
    splitter.feed(b"da")
    assert not splitter.between_events


@given(
    payloads=st.lists(st.binary(max_size=12).filter(lambda b: not set(b) & set(b"\r\n")), max_size=6),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_events_do_not_depend_on_how_the_bytes_are_cut(payloads: list[bytes], end: bytes, cuts: list[int]) -> None:
    stream = b"".join(b"data: " + payload + end + end for payload in payloads) + b":"
    at = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(at)]
    assert split(*chunks) == split(stream) == payloads
    assert split(*(stream[i : i + 1] for i in range(len(stream)))) == payloads


def test_an_event_beyond_the_bound_ends_the_splitting_not_the_stream() -> None:
    splitter = EventSplitter(100)
    assert splitter.feed(b"data: a\n\ndata: " + b"x" * 101) == [b"a"]
    assert splitter.gave_up
    assert splitter.feed(b"\n\ndata: b\n\n") == []
    assert not splitter.between_events
    many = EventSplitter(100)
    for _ in range(12):
        many.feed(b"data: 12345678\n")
    assert many.gave_up


def timed(*arrivals: tuple[float, bytes], sent_s: float = 10.0) -> StreamTiming:
    timing = StreamTiming(sent_s, LIMIT)
    for at_s, chunk in arrivals:
        timing.feed(chunk, at_s)
    return timing


def test_ttft_is_the_first_tokens_not_the_roles_and_tbot_the_mean_between() -> None:
    timing = timed((10.1, ROLE), (10.5, TOKEN), (10.6, TOKEN), (10.9, TOKEN), (11.5, END + DONE))
    assert timing.latency() == StreamLatency(pytest.approx(0.5), pytest.approx(0.2), 3)
    assert timing.ending is Ending.DONE


def test_usage_counts_tokens_where_chunks_carry_several() -> None:
    usage = event({"choices": [], "usage": {"completion_tokens": 9}})
    timing = timed((10.5, TOKEN), (10.9, TOKEN), (11.0, usage), (11.0, DONE))
    assert timing.latency() == StreamLatency(pytest.approx(0.5), pytest.approx(0.05), 9)


@pytest.mark.parametrize("count", [None, "9", True, 0, -1, 1.5])
def test_a_usage_without_a_count_is_no_count(count: object) -> None:
    timing = timed((10.5, TOKEN), (10.9, TOKEN), (11.0, event({"usage": {"completion_tokens": count}})))
    assert timing.latency().tokens == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "a"},
        {"reasoning_content": "a"},
        {"reasoning": "a"},
        {"tool_calls": [{"index": 0}]},
        {"function_call": {"name": "f"}},
        {"refusal": "no"},
        {"audio": {"data": "x"}},
    ],
)
def test_whatever_is_generated_is_a_token(fields: dict[str, Any]) -> None:
    assert timed((10.5, delta(**fields))).latency().tokens == 1


def test_a_completions_text_is_a_token_and_an_empty_one_is_none() -> None:
    timing = timed((10.5, event({"choices": [{"text": ""}]})), (10.7, event({"choices": [{"text": "a"}]})))
    assert timing.latency() == StreamLatency(pytest.approx(0.7), None, 1)


def test_a_stream_without_a_token_has_no_latency() -> None:
    assert timed((10.1, ROLE), (10.2, END), (10.2, DONE)).latency() == StreamLatency(None, None, 0)


def test_one_chunk_with_many_tokens_has_no_time_between() -> None:
    timing = timed((10.5, TOKEN), (10.6, event({"choices": [], "usage": {"completion_tokens": 9}})))
    assert timing.latency() == StreamLatency(pytest.approx(0.5), None, 9)


def test_a_slow_reader_is_not_a_slow_engine() -> None:
    timing = timed((10.5, TOKEN))
    timing.waited(0.2)
    timing.feed(TOKEN, 11.5)
    assert timing.latency().tbot_s is None
    quick = timed()
    quick.waited(5.0)  # before the first token: of no token's time
    quick.feed(TOKEN, 10.5)
    quick.waited(0.09)
    quick.feed(TOKEN, 11.5)
    assert quick.latency().tbot_s == pytest.approx(1.0)


def test_how_a_stream_ended_is_what_it_said_itself() -> None:
    assert timed((10.5, TOKEN)).ending is Ending.CUT
    assert timed((10.5, TOKEN + event({"error": {"message": "x"}}) + DONE)).ending is Ending.ERROR


def test_a_last_word_fits_between_events_and_not_after_the_end() -> None:
    assert timed((10.5, TOKEN)).may_append
    assert not timed((10.5, TOKEN + b"data: {")).may_append
    assert not timed((10.5, TOKEN + DONE)).may_append


@pytest.mark.parametrize(
    "payload", [b"{", b"[]", b"7", b'{"choices": 7}', b'{"choices": [7]}', b'{"usage": 7}', b"\xff"]
)
def test_an_event_of_another_shape_is_passed_over(payload: bytes) -> None:
    assert timed((10.5, b"data: " + payload + b"\n\n"), (10.6, TOKEN)).latency().tokens == 1


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_at_all_are_no_error(chunks: list[bytes]) -> None:
    timing = timed(*((10.0 + i, chunk) for i, chunk in enumerate(chunks)))
    assert timing.latency().tokens >= 0


texts = st.sampled_from(
    ["", "a", '"', '"usage":{"completion_tokens":9}', '"delta":{"content":"x"}', "\\", '","error":1', "é"]
)
usages = st.sampled_from([{}, {"usage": None}, {"usage": {"completion_tokens": 7}}, {"error": None}, {"error": "e"}])
deltas = st.one_of(
    texts.map(lambda text: {"content": text}),
    texts.map(lambda text: {"role": "assistant", "content": text}),
    st.tuples(texts, texts).map(lambda two: {"reasoning_content": two[0], "content": two[1]}),
    st.just({"content": None, "tool_calls": [{"function": {"arguments": '{"content":"x"}'}}]}),
    st.just({}),
)


@given(chunks=st.lists(st.tuples(deltas, usages), max_size=8), spaced=st.booleans())
def test_chunks_known_by_their_bytes_count_as_if_they_were_read(
    chunks: list[tuple[dict[str, object], dict[str, object]]],
    spaced: bool,  # noqa: FBT001 - hypothesis passes by name
) -> None:
    def measured() -> tuple[StreamLatency, Ending]:
        timing = StreamTiming(0.0, LIMIT)
        for i, (fields, more) in enumerate(chunks):
            document = {"id": "1", "choices": [{"index": 0, "delta": fields}], **more}
            payload = json.dumps(document).encode() if spaced else orjson.dumps(document)
            timing.feed(b"data: " + payload + b"\n\n", float(i))
        return timing.latency(), timing.ending

    quick = measured()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.infra.gateway.core.stream_timing._PLAIN_TOKEN", re.compile(rb"(?!)"))
        assert measured() == quick
