"""What each reason of a decision means, in one sentence with the engine in it."""

from collections.abc import Mapping
from typing import Final

from headrace.dataplane.decision import DecisionReason as Reason

OF_REASON: Final[Mapping[Reason, str]] = {
    Reason.SLOT: "The session's slot in the route's table belongs to {engine}: the usual case.",
    Reason.HINT: "The caller asked for {engine}, which has a weight and was not left out.",
    Reason.FAILOVER: "The engine of the session's slot was down, suspected or tried already; {engine} had room for it.",
    Reason.REHASH: "The engine of the session's slot was down, suspected or tried already; another slot gave {engine}.",
    Reason.SCAN: "The engines of the session's slots were left out; weighed among the others, {engine} came first.",
    Reason.RELEASED: "The engine of the session's slot had more than its share under way; the session is at {engine}.",
    Reason.SPILLED: "More arrived than the weights knew of, and the slot's engine had no room for it; {engine} had.",
    Reason.PANIC: "Every engine that was up was suspected; suspicion was ignored, and {engine} came first by weight.",
    Reason.FALLBACK_DOWN: "Every engine with a weight was down; {engine} is of the snapshot's static fallback.",
    Reason.FALLBACK_STALE: "The weights were past their time to live; {engine} is of the snapshot's static fallback.",
    Reason.STALE_WEIGHTS: "The weights were past their time to live and name no fallback; by them it is {engine}.",
    Reason.FALLBACK_CONFIGURED: "No weights had arrived yet; {engine} is of the gateway's configured fallback.",
    Reason.SHED: "More was asked for than capacity, or a pin, allowed; the session is in the share that is shed.",
    Reason.THROTTLED: "Every engine of the route rejected requests; the session is in the share that was held back.",
    Reason.NO_SNAPSHOT: "No weights had arrived yet, and no fallback is configured for the model.",
    Reason.UNKNOWN_ROUTE: "The weights have no route for this model and class at this cluster.",
    Reason.NO_ELIGIBLE_ENGINE: "The weights exclude every engine from this route.",
    Reason.ALL_DOWN: "Every engine that might be used was known to be down.",
    Reason.NO_OTHER_ENGINE: "Engines were up, and all of them had been tried already.",
    Reason.INVALID_REQUEST: "The request's key, class or model was not of a form that can be routed.",
}


def reason_sentence(reason: Reason, engine: str | None) -> str:
    """Say what a reason means for this engine."""
    return OF_REASON[reason].format(engine=engine or "the engine")
