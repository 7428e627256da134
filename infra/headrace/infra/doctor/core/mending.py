"""Commands that several checks name: where an engine's signals come from decides what mends them."""

from headrace.infra.doctor.core.picture import Picture
from headrace.schemas.signals import EngineSignals


def how_to_publish(picture: Picture, engine_id: str) -> tuple[str, ...]:
    """Give how to see, and to mend, what an engine publishes: its mapping where the bridge reads it, else a sidecar."""
    for source in picture.telemetry:
        if source.trial is not None and engine_id in source.trial.engines:
            return (f"headrace map test --topic {source.topic} {source.mapping}",)
    bridged = any(
        isinstance(heard.signal, EngineSignals) and heard.signal.engine_id == engine_id and heard.signal.lineage
        for heard in picture.signals or ()
    )
    if bridged and picture.telemetry:
        first = picture.telemetry[0]
        return (f"headrace map test --topic {first.topic} {first.mapping}",)
    return (
        "headrace signals states",
        f"headrace signals publish --url http://ENGINE:8000/metrics --engine-id {engine_id} --preset vllm_v1",
    )
