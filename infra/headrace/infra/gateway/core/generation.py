"""The body of a request to generate, read once: what routing needs of it, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

import orjson

from headrace.infra.gateway.core.refusal import Refusal
from headrace.schemas.ids import is_identifier

MODEL_SHOWN: Final = 80
"""Characters of an unusable model name that an error repeats."""


class Endpoint(StrEnum):
    """What may be asked of an engine, by its path."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    EMBEDDINGS = "/v1/embeddings"


@dataclass(frozen=True, slots=True)
class Generation:
    """What a request asks for. `body` is the whole JSON document, not judged: that is the engine's business."""

    endpoint: Endpoint
    model: str
    stream: bool
    body: dict[str, Any]

    def text(self, name: str) -> str | None:
        """Give a member that is a string and not empty; else None."""
        value = self.body.get(name)
        return value if isinstance(value, str) and value else None

    def messages(self) -> Sequence[Any]:
        """Give the conversation, or an empty one where the body has none."""
        value = self.body.get("messages")
        return cast("list[Any]", value) if isinstance(value, list) else ()


def read_generation(endpoint: Endpoint, content: bytes) -> Generation | Refusal:
    """Read a body; a refusal where it is no JSON object or names no model.

    Unknown members are left alone: engines know more of them than a gateway ever will.
    """
    try:
        document: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return Refusal.bad_request(f"the body is no JSON: {error}")
    if not isinstance(document, dict):
        return Refusal.bad_request("the body is no JSON object")
    body = cast("dict[str, Any]", document)
    model = body.get("model")
    if not isinstance(model, str):
        return Refusal.bad_request("model is missing, or is no string", param="model")
    if not is_identifier(model):
        return Refusal.unknown_model(model[:MODEL_SHOWN])
    return Generation(endpoint, model, body.get("stream") is True, body)
