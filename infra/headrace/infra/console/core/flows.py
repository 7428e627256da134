"""The flow map: how many requests per second go from whom to whom, at one version, gathered until it can be read.

    from   clusters; routes, where one cluster is looked at
    to     sites, models or engines; what is refused flows to SHED
The largest `top` of either side keep their names, the others are one, OTHERS; sums are kept, whatever is gathered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.schemas.fleet import EngineSpec
from headrace.schemas.weights import PPM, RouteWeights, Snapshot

SHED = "!shed"
OTHERS = "!others"
UNKNOWN = "!unknown"
"""`!` is outside the identifier alphabet: no name can collide with these."""
ENGINE, SITE, MODEL = "engine", "site", "model"
GROUPS = (SITE, MODEL, ENGINE)


@dataclass(frozen=True, slots=True)
class FlowNode:
    """One end of the map: a name, what flows through it, and how many names are gathered in it."""

    name: str
    rps: float
    names: int


@dataclass(frozen=True, slots=True)
class Flow:
    """What flows from one to another."""

    source: str
    target: str
    rps: float


@dataclass(frozen=True, slots=True)
class FlowMap:
    """The map, largest first; OTHERS and SHED come last."""

    version: int
    tick_ms: int
    cluster: str | None
    group: str
    sources: tuple[FlowNode, ...]
    targets: tuple[FlowNode, ...]
    flows: tuple[Flow, ...]


def flow_map(
    snapshot: Snapshot, specs: Mapping[str, EngineSpec], group: str, top: int, cluster: str | None = None
) -> FlowMap:
    """Give the map of one version, of all clusters or of one."""
    named = _target_name(specs, group)
    pairs: dict[tuple[str, str], float] = {}
    for route in snapshot.routes:
        if cluster is not None and route.cluster != cluster:
            continue
        source = route.cluster if cluster is None else f"{route.model}|{route.request_class}"
        for target, rps in _flows_of(route, named):
            pairs[source, target] = pairs.get((source, target), 0.0) + rps
    sources, targets = (_sides(pairs, side, top) for side in (0, 1))
    gathered: dict[tuple[str, str], float] = {}
    for (source, target), rps in pairs.items():
        pair = sources.get(source, OTHERS), targets.get(target, OTHERS)
        gathered[pair] = gathered.get(pair, 0.0) + rps
    flows = sorted((Flow(*pair, rps) for pair, rps in gathered.items()), key=lambda f: (-f.rps, f.source, f.target))
    return FlowMap(
        version=snapshot.commit.version,
        tick_ms=snapshot.commit.tick_ms,
        cluster=cluster,
        group=group,
        sources=_nodes(gathered, pairs, sources, 0),
        targets=_nodes(gathered, pairs, targets, 1),
        flows=tuple(flows),
    )


def _target_name(specs: Mapping[str, EngineSpec], group: str) -> Callable[[str, RouteWeights], str]:
    def site(engine_id: str, _: RouteWeights) -> str:
        spec = specs.get(engine_id)
        return UNKNOWN if spec is None else spec.site

    def engine(engine_id: str, _: RouteWeights) -> str:
        return engine_id

    def model(_: str, route: RouteWeights) -> str:
        return route.model

    return {SITE: site, ENGINE: engine, MODEL: model}[group]


def _flows_of(route: RouteWeights, named: Callable[[str, RouteWeights], str]) -> tuple[tuple[str, float], ...]:
    kept = route.demand_rps * (1.0 - route.shed_ratio)
    found = [(named(t.engine_id, route), kept * t.weight_ppm / PPM) for t in route.targets if t.weight_ppm]
    shed = route.demand_rps * route.shed_ratio
    return (*found, *([(SHED, shed)] if shed > 0.0 else []))


def _sides(pairs: Mapping[tuple[str, str], float], side: int, top: int) -> Mapping[str, str]:
    """Give the names of one side that stay, each as itself; a single one too many is no reason to gather it."""
    sums: dict[str, float] = {}
    for pair, rps in pairs.items():
        sums[pair[side]] = sums.get(pair[side], 0.0) + rps
    ranked = sorted((name for name in sums if name != SHED), key=lambda name: (-sums[name], name))
    kept = ranked if len(ranked) <= top + 1 else ranked[:top]
    return {name: name for name in (*kept, SHED) if name in sums}


def _nodes(
    gathered: Mapping[tuple[str, str], float],
    pairs: Mapping[tuple[str, str], float],
    kept: Mapping[str, str],
    side: int,
) -> tuple[FlowNode, ...]:
    sums: dict[str, float] = {}
    for pair, rps in gathered.items():
        sums[pair[side]] = sums.get(pair[side], 0.0) + rps
    many = len({pair[side] for pair in pairs} - kept.keys())
    last = {OTHERS: 1, SHED: 2}
    ranked = sorted(sums, key=lambda name: (last.get(name, 0), -sums[name], name))
    return tuple(FlowNode(name, sums[name], many if name == OTHERS else 1) for name in ranked)
