"""What a simulated engine says, in OpenAI's shapes. Pure: times and identities are arguments."""

from collections.abc import Mapping
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"


def event(document: Mapping[str, Any]) -> bytes:
    """Give one event of a stream."""
    return b"data: " + orjson.dumps(document) + b"\n\n"


def error(status: int, message: str) -> dict[str, Any]:
    """Give an error as vLLM shapes it."""
    return {"error": {"message": message, "type": "EngineError", "param": None, "code": status}}


class Chat:
    """The documents of one chat answer."""

    def __init__(self, identity: str, model: str, created_s: int) -> None:
        self._same = {"id": f"chatcmpl-{identity}", "created": created_s, "model": model}

    def first(self) -> dict[str, Any]:
        """Give the chunk that carries the role and no token, as engines send it at once."""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def token(self, text: str) -> dict[str, Any]:
        """Give a chunk with a token."""
        return self._chunk({"content": text}, None)

    def last(self) -> dict[str, Any]:
        """Give the chunk that says why it ends."""
        return self._chunk({}, "stop")

    def usage(self, prompt: int, tokens: int) -> dict[str, Any]:
        """Give the chunk that counts."""
        return {**self._same, "object": "chat.completion.chunk", "choices": [], "usage": usage(prompt, tokens)}

    def whole(self, text: str, prompt: int, tokens: int) -> dict[str, Any]:
        """Give the answer in one piece."""
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {**self._same, "object": "chat.completion", "choices": [choice], "usage": usage(prompt, tokens)}

    def _chunk(self, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._same, "object": "chat.completion.chunk", "choices": [choice]}


class Text:
    """The documents of one completion; the same steps as a chat's."""

    def __init__(self, identity: str, model: str, created_s: int) -> None:
        self._same = {"id": f"cmpl-{identity}", "created": created_s, "model": model, "object": "text_completion"}

    def first(self) -> None:
        """Give nothing: a completion has no role."""

    def token(self, text: str) -> dict[str, Any]:
        """Give a chunk with a token."""
        return {**self._same, "choices": [{"index": 0, "text": text, "finish_reason": None}]}

    def last(self) -> dict[str, Any]:
        """Give the chunk that says why it ends."""
        return {**self._same, "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}

    def usage(self, prompt: int, tokens: int) -> dict[str, Any]:
        """Give the chunk that counts."""
        return {**self._same, "choices": [], "usage": usage(prompt, tokens)}

    def whole(self, text: str, prompt: int, tokens: int) -> dict[str, Any]:
        """Give the answer in one piece."""
        choice = {"index": 0, "text": text, "finish_reason": "stop"}
        return {**self._same, "choices": [choice], "usage": usage(prompt, tokens)}


def usage(prompt: int, tokens: int) -> dict[str, int]:
    """Give the count of tokens."""
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def embeddings(model: str, count: int) -> dict[str, Any]:
    """Give so many small vectors."""
    data = [{"object": "embedding", "index": i, "embedding": [0.25, -0.5, 1.0]} for i in range(count)]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
