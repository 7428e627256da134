"""`/v1/models` in OpenAI's shape."""

from collections.abc import Iterable
from typing import Any


def model_document(model: str, since_s: int) -> dict[str, Any]:
    """Give one model; `since_s` is when this gateway's routes were made, since nobody knows when the model was."""
    return {"id": model, "object": "model", "created": since_s, "owned_by": "headrace"}


def model_list(models: Iterable[str], since_s: int) -> dict[str, Any]:
    """Give all models, sorted."""
    return {"object": "list", "data": [model_document(model, since_s) for model in sorted(models)]}
