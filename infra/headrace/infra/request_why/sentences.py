"""What weights say of an engine, in one sentence each: why it has its weight, why it is excluded."""

from headrace.schemas.weights import PPM, Excluded, Reason, RouteWeights, Target

MAX_EXCLUDED = 3


def of_target(target: Target) -> str:
    """Say why an engine has its weight, with the prediction it is made for."""
    parts = [f"network {target.network_s * 1000:.1f} ms"]
    if target.ttft_s is not None:
        parts.append(f"first token after {target.ttft_s * 1000:.0f} ms")
    if target.utilisation is not None:
        parts.append(f"{target.utilisation:.0%} of its capacity in use")
    told = [] if target.sentence.startswith(target.reason) else [str(target.reason)]
    weight = f"{target.weight_ppm / PPM:.2%}"
    return f"{target.engine_id} has {weight} because: {target.sentence} ({'; '.join([*told, ', '.join(parts)])})."


def with_reason(sentence: str, reason: Reason) -> str:
    """Give a sentence with its reason's code, which the solver's own sentences begin with."""
    return sentence if sentence.startswith(reason) else f"{sentence} ({reason})"


def of_excluded(excluded: Excluded) -> str:
    """Say why an engine is excluded."""
    return f"{excluded.engine_id}, which is excluded: {with_reason(excluded.sentence, excluded.reason)}."


def excluded_words(weights: RouteWeights) -> list[str]:
    """Say which engines a route may not use; the first few."""
    return [f"{e.engine_id} is excluded: {with_reason(e.sentence, e.reason)}." for e in weights.excluded[:MAX_EXCLUDED]]
