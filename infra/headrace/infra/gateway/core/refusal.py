"""What a caller is told when the gateway itself answers: a status, and an error of the shape OpenAI's clients read.

    {"error": {"message": "...", "type": "...", "param": null, "code": "..."}}

The router's reasons map to a status and a code here, once; the code is stable, the message is for people.
"""

import math
from dataclasses import dataclass
from typing import Final, Self

import orjson

from headrace.dataplane.decision import Decision, DecisionReason, Outcome

INVALID: Final = "invalid_request_error"
SERVER: Final = "server_error"
LIMITED: Final = "rate_limit_error"
MODEL_NOT_FOUND: Final = "model_not_found"

_UNAVAILABLE: Final = {
    DecisionReason.NO_SNAPSHOT: "No weights have arrived yet.",
    DecisionReason.NO_ELIGIBLE_ENGINE: "No engine may take this request now.",
    DecisionReason.ALL_DOWN: "Every engine that serves this model is down.",
    DecisionReason.NO_OTHER_ENGINE: "No other engine serves this model.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer without an engine. `retry_after_s` None: trying again does not help."""

    status: int
    kind: str
    code: str
    message: str
    param: str | None = None
    retry_after_s: float | None = None

    @classmethod
    def bad_request(cls, message: str, param: str | None = None) -> Self:
        """Say that the request cannot be used as it is."""
        return cls(400, INVALID, "invalid_request", message, param)

    @classmethod
    def malformed(cls) -> Self:
        """Say that what came is no HTTP, or more of a head than is read."""
        return cls(400, INVALID, "malformed_http", "The request is malformed, or its head is too large.")

    @classmethod
    def unforeseen(cls) -> Self:
        """Say that the gateway itself failed."""
        return cls(500, SERVER, "gateway_error", "The gateway failed to answer this request.")

    @classmethod
    def unknown_model(cls, model: str) -> Self:
        """Say that the model is not served here."""
        return cls(404, INVALID, MODEL_NOT_FOUND, f"The model {model!r} does not exist here.", "model")

    @classmethod
    def unauthorized(cls) -> Self:
        """Say that the caller's credential is missing or not known."""
        return cls(401, INVALID, "invalid_api_key", "The bearer credential is missing or not known.")

    @classmethod
    def too_large(cls, limit: int) -> Self:
        """Say that the body is above its bound."""
        return cls(413, INVALID, "body_too_large", f"The body is larger than {limit} bytes.")

    @classmethod
    def overloaded(cls, message: str) -> Self:
        """Say that this gateway has no room for the request now."""
        return cls(503, SERVER, "gateway_overloaded", message, retry_after_s=1.0)

    @classmethod
    def timed_out(cls, phase: str, seconds: float) -> Self:
        """Say that the engine took longer than a phase may take."""
        return cls(504, SERVER, "engine_timeout", f"The engine did not answer: {phase} took more than {seconds:g} s.")

    @classmethod
    def lost(cls) -> Self:
        """Say that the engine broke off before it answered, and no other could be tried."""
        return cls(502, SERVER, "engine_lost", "The engine broke off before its answer began.", retry_after_s=1.0)

    @classmethod
    def broken(cls) -> Self:
        """Say, in a stream that began, that it ends here."""
        return cls(502, SERVER, "engine_lost", "The engine broke off its answer.")

    @classmethod
    def without_address(cls) -> Self:
        """Say that nobody gave the chosen engine an address."""
        message = (
            "The chosen engine has no address: its entry in fleet.toml needs `address`, or the gateway's configuration "
            "gateway.engines.ENGINE_ID.address."
        )
        return cls(503, SERVER, "engine_without_address", message, retry_after_s=1.0)

    def headers(self) -> dict[str, str]:
        """Give the headers that say when to come back; OpenAI's clients read both, the finer one first."""
        if self.retry_after_s is None:
            return {}
        return {
            "Retry-After": str(math.ceil(self.retry_after_s)),
            "retry-after-ms": str(math.ceil(self.retry_after_s * 1000)),
        }

    def body(self) -> bytes:
        """Give the JSON document."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return orjson.dumps({"error": error})

    def event(self) -> bytes:
        """Give the same as one event of a stream, for a failure after the stream began."""
        return b"data: " + self.body() + b"\n\n"


def refusal_of(decision: Decision) -> Refusal:
    """Turn the router's refusal into an answer."""
    code = decision.reason.value.lower()
    if decision.outcome is Outcome.SHED:
        message = "More is asked for than may be served; this session waits its turn."
        return Refusal(429, LIMITED, code, message, retry_after_s=decision.retry_after_s)
    if decision.reason is DecisionReason.UNKNOWN_ROUTE:
        message = "The model does not exist here, or not for this class of requests."
        return Refusal(404, INVALID, MODEL_NOT_FOUND, message, "model")
    if decision.reason in _UNAVAILABLE:
        return Refusal(503, SERVER, code, _UNAVAILABLE[decision.reason], retry_after_s=decision.retry_after_s)
    return Refusal.bad_request(f"the request cannot be routed: {decision.reason.value}")
