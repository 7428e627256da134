"""Which requests belong together: the key that keeps a conversation on the engine that has its KV cache.

    header ─► prompt_cache_key ─► user ─► tenant + the first prefix that is the user's own ─► none: spread by weights

The last one is the conversation's first message that is neither system nor developer: it is the same on every turn,
while the system prompt before it is shared by everyone and would put everyone on one engine. A completion's prompt has
no such border, so its prefix begins after `shared_prefix_chars`. Embeddings keep no cache: they have no key unless one
is given. Keys found in the body are kept apart by tenant; a header's value is taken as it is, so that an operator can
give it to `headrace route --key`.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import orjson
import xxhash

from headrace.infra.gateway.core.generation import Endpoint, Generation

SHARED_ROLES: Final = ("system", "developer")
MAX_KEY_CHARS: Final = 1_024
"""Longer keys are cut: what differs only beyond is one session."""
MAX_MESSAGE_CHARS: Final = 16_384
"""Of the first message that count: enough to tell conversations apart, and bounds the hashing."""


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """How much of a completion's prompt makes its session, after how much that all sessions share."""

    shared_chars: int
    prefix_chars: int


def session_key(generation: Generation, header: str | None, tenant: str, rule: PrefixRule) -> str | None:
    """Give the session's key; None where nothing tells sessions apart."""
    if header:
        return header[:MAX_KEY_CHARS]
    for name in ("prompt_cache_key", "user"):
        value = generation.text(name)
        if value is not None:
            return f"{tenant}|{name}|{value[:MAX_KEY_CHARS]}"
    prefix = _own_prefix(generation, rule)
    if not prefix:
        return None
    digest = xxhash.xxh3_128_hexdigest(prefix.encode("utf-8", "surrogatepass"))
    return f"{tenant}|prefix|{digest}"


def established(generation: Generation) -> bool | None:
    """Say whether a conversation has begun before this request: it holds an answer. None where there is no telling."""
    if generation.endpoint is not Endpoint.CHAT:
        return None
    messages = [cast("dict[str, Any]", message) for message in generation.messages() if isinstance(message, dict)]
    return any(message.get("role") == "assistant" for message in messages)


def _own_prefix(generation: Generation, rule: PrefixRule) -> str:
    if generation.endpoint is Endpoint.CHAT:
        return _first_message(generation)
    if generation.endpoint is Endpoint.COMPLETIONS:
        prompt = _prompt_text(generation.body.get("prompt"), rule.shared_chars + rule.prefix_chars)
        return prompt[rule.shared_chars : rule.shared_chars + rule.prefix_chars]
    return ""


def _first_message(generation: Generation) -> str:
    """Give the content of the first message that is not everyone's."""
    for message in generation.messages():
        if not isinstance(message, dict):
            return ""
        fields = cast("dict[str, Any]", message)
        if fields.get("role") not in SHARED_ROLES:
            return _content_text(fields.get("content"))[:MAX_MESSAGE_CHARS]
    return ""


def _content_text(content: object) -> str:
    """Give a message's content as text; parts (text, images) as their JSON."""
    if isinstance(content, str):
        return content
    return orjson.dumps(content).decode() if content else ""


def _prompt_text(prompt: object, chars: int) -> str:
    """Give the first prompt's beginning: text, or token ids in decimal, whose prefix is a prefix as well."""
    while isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list):
        prompt = cast("list[object]", prompt)[0]
    if isinstance(prompt, str):
        return prompt[:chars]
    if isinstance(prompt, list):
        return " ".join(str(token) for token in cast("list[object]", prompt)[:chars])[:chars]
    return ""
