"""What weights say of an engine, in one sentence each: why it has its weight, why it is excluded."""

from headrace.schemas.weights import PPM, Excluded, RouteWeights, Target

MAX_EXCLUDED = 3


def of_target(target: Target) -> str:
    """Say why an engine has its weight, with the prediction it is made for."""
    parts = [f"network {target.network_s * 1000:.1f} ms"]
    if target.ttft_s is not None:
        parts.append(f"first token after {target.ttft_s * 1000:.0f} ms")
    if target.utilisation is not None:
        parts.append(f"{target.utilisation:.0%} of its capacity in use")
    weight = f"{target.weight_ppm / PPM:.2%}"
    return f"{target.engine_id} has {weight} because: {target.sentence} ({target.reason}; {', '.join(parts)})."


def of_excluded(excluded: Excluded) -> str:
    """Say why an engine is excluded."""
    return f"{excluded.engine_id}, which is excluded: {excluded.sentence} ({excluded.reason})."


def excluded_words(weights: RouteWeights) -> list[str]:
    """Say which engines a route may not use; the first few."""
    return [f"{e.engine_id} is excluded: {e.sentence} ({e.reason})." for e in weights.excluded[:MAX_EXCLUDED]]
