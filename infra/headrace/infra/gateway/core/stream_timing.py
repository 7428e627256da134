"""Latency of one answer, read off its stream as it passes.

    TTFT = first token's arrival - the request's sending                       a chunk with only a role is no token
    TBOT = (last token's arrival - first token's) / (tokens - 1)               tokens: `usage` where the stream has one,
                                                                               else chunks with content

TTFT is as seen from here: it holds the round trip to the engine. A chunk may carry several tokens, so without `usage`
TBOT is the time between chunks. Not measured, None: TTFT without any token; TBOT with fewer than two tokens, or where
the client read so slowly that the engine had to wait (more than a tenth of the time between the first and the last
token), since that is then what would be measured.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

import orjson

from headrace.infra.gateway.core.event_lines import EventSplitter

DONE: Final = b"[DONE]"
WAITED_SHARE: Final = 0.1
_PLAIN_TOKEN: Final = re.compile(rb'"delta":\s?\{(?:"role":\s?"assistant",\s?)?"content":\s?"(?!")')
_MORE: Final = re.compile(rb'"(?:usage|error)":(?!\s?null\b)')
"""Most of a stream is chunks with one token's text and nothing else: known by their bytes, without reading the JSON. A
quote inside a JSON text is escaped, so neither can be found inside of one. What looks otherwise is read in full."""
_TOKEN_FIELDS: Final = ("reasoning_content", "reasoning", "tool_calls", "function_call", "refusal", "audio")


class Ending(StrEnum):
    """How a stream ended, by what it said itself."""

    DONE = "DONE"
    ERROR = "ERROR"
    """One of its events was an error: the engine failed and said so."""
    CUT = "CUT"
    """It stopped without saying that it was done."""


@dataclass(frozen=True, slots=True)
class StreamLatency:
    """What was measured, in seconds; None where it could not be."""

    ttft_s: float | None = None
    tbot_s: float | None = None
    tokens: int = 0


class StreamTiming:
    """Measures one stream. Instants are in seconds of any clock that does not go backwards."""

    __slots__ = ("_chunks", "_done", "_failed", "_first_s", "_last_s", "_sent_s", "_splitter", "_usage", "_waited_s")

    def __init__(self, sent_s: float, max_event_bytes: int) -> None:
        self._sent_s = sent_s
        self._splitter = EventSplitter(max_event_bytes)
        self._first_s: float | None = None
        self._last_s = sent_s
        self._chunks = 0
        self._usage: int | None = None
        self._waited_s = 0.0
        self._done = self._failed = False

    @property
    def may_append(self) -> bool:
        """Whether an event of the gateway's own may be put at the stream's end: not inside another, not after DONE."""
        return self._splitter.between_events and not self._done

    @property
    def ending(self) -> Ending:
        """How the stream ended, if nothing more comes."""
        if self._failed:
            return Ending.ERROR
        return Ending.DONE if self._done else Ending.CUT

    def feed(self, chunk: bytes, at_s: float) -> None:
        """Take bytes that arrived at an instant."""
        for payload in self._splitter.feed(chunk):
            if payload.strip() == DONE:
                self._done = True
            else:
                self._read(payload, at_s)

    def waited(self, seconds: float) -> None:
        """Note time that the client let pass before it took what was sent."""
        if self._first_s is not None:
            self._waited_s += seconds

    def latency(self) -> StreamLatency:
        """Give what was measured so far."""
        if self._first_s is None:
            return StreamLatency()
        tokens = self._chunks if self._usage is None else self._usage
        spread_s = self._last_s - self._first_s
        slow_reader = self._waited_s > WAITED_SHARE * spread_s
        measured = tokens > 1 and self._chunks > 1 and not slow_reader
        return StreamLatency(self._first_s - self._sent_s, spread_s / (tokens - 1) if measured else None, tokens)

    def _read(self, payload: bytes, at_s: float) -> None:
        if self._first_s is not None and _PLAIN_TOKEN.search(payload) and not _MORE.search(payload):
            self._chunks += 1
            self._last_s = at_s
            return
        try:
            document: Any = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return
        if not isinstance(document, dict):
            return
        event = cast("dict[str, Any]", document)
        self._failed = self._failed or event.get("error") is not None
        self._usage = _completion_tokens(event.get("usage"), self._usage)
        if _has_token(event.get("choices")):
            self._chunks += 1
            self._last_s = at_s
            if self._first_s is None:
                self._first_s = at_s


def _has_token(choices: object) -> bool:
    """Say whether any choice carries something generated: text, reasoning, a tool call; not a role or an ending."""
    if not isinstance(choices, list):
        return False
    for each in cast("list[object]", choices):
        choice: dict[str, Any] = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        delta = choice.get("delta")
        if isinstance(delta, dict):
            fields = cast("dict[str, Any]", delta)
            if fields.get("content") or any(map(fields.get, _TOKEN_FIELDS)):
                return True
        elif choice.get("text"):
            return True
    return False


def _completion_tokens(usage: object, before: int | None) -> int | None:
    """Give the count of a `usage` member; engines that send it with every chunk send a running one."""
    if not isinstance(usage, dict):
        return before
    count = cast("dict[str, Any]", usage).get("completion_tokens")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else before
