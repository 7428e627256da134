"""Commands that several checks name: where an engine's signals come from decides what mends them."""

from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import quoted
from headrace.schemas.signals import EngineSignals

REFIT = ("headrace profile fit load.csv --out profiles.toml", "headrace fleet apply profiles.toml")
"""Measure again: what `load.csv` holds, `headrace profile fit --form` says."""
PUBLISH_FLEET = ("headrace fleet apply --form > fleet.toml", "headrace fleet apply fleet.toml")
_SOMEWHERE = "http://ENGINE:8000"
SET_CLOCK = "chronyc makestep"


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
    return ("headrace signals states", sidecar(picture, engine_id))


def sidecar(picture: Picture, engine_id: str) -> str:
    """Give the command that reads an engine's metrics beside it, at its own address where the fleet has one."""
    spec = None if picture.view is None else picture.view.specs.get(engine_id.encode())
    address = "" if spec is None or spec.address is None else spec.address.rstrip("/")
    url = quoted(f"{address if address.startswith('http') else _SOMEWHERE}/metrics")
    return f"headrace signals publish --url {url} --engine-id {engine_id} --preset vllm_v1"


def explain(picture: Picture, engine_id: str) -> str:
    """Give the command that says why an engine gets what it gets, of a cluster that sends it the most."""
    sent = {
        (target.weight_ppm * route.demand_rps, route.cluster)
        for route in picture.routes.values()
        for target in route.targets
        if target.engine_id == engine_id
    }
    clusters = sent or {(0.0, route.cluster) for route in picture.routes.values()}
    return f"headrace explain {max(clusters)[1]} {engine_id}" if clusters else "headrace tail --explain --no-follow"


def why(picture: Picture, cluster: str, site: str) -> str:
    """Give the command that says what a cluster sends to a site, by an engine there."""
    there = sorted(
        spec.engine_id for spec in (picture.view.specs.values() if picture.view else ()) if spec.site == site
    )
    return f"headrace explain {cluster} {there[0]}" if there else f"headrace tail --cluster {cluster} --no-follow"
