"""The weights of one version as rows: who sends whom how much; of one cluster, of one engine, or the largest of all."""

from dataclasses import dataclass

from headrace.schemas.weights import PPM, Excluded, Snapshot


@dataclass(frozen=True, slots=True)
class WeightRow:
    """One engine's share of one route: what can be asked why."""

    cluster: str
    model: str
    request_class: str
    engine_id: str
    weight_ppm: int
    previous_ppm: int
    solver_ppm: int
    rps: float
    network_ms: float
    ttft_ms: float | None
    utilisation: float | None
    reason: str
    sentence: str
    since_version: int


@dataclass(frozen=True, slots=True)
class WeightRows:
    """Rows, most requests first; `left_out` are those beyond the limit. `excluded` are the asked engine's, by route."""

    version: int
    tick_ms: int
    rows: tuple[WeightRow, ...]
    left_out: int
    excluded: tuple[Excluded, ...]


def weight_rows(snapshot: Snapshot, cluster: str | None, engine_id: str | None, limit: int) -> WeightRows:
    """Give the rows; None does not filter."""
    rows: list[WeightRow] = []
    excluded: dict[str, Excluded] = {}
    for route in snapshot.routes:
        if cluster is not None and route.cluster != cluster:
            continue
        kept = route.demand_rps * (1.0 - route.shed_ratio)
        rows += [
            WeightRow(
                cluster=route.cluster,
                model=route.model,
                request_class=route.request_class,
                engine_id=target.engine_id,
                weight_ppm=target.weight_ppm,
                previous_ppm=target.previous_ppm,
                solver_ppm=target.solver_ppm,
                rps=kept * target.weight_ppm / PPM,
                network_ms=1000 * target.network_s,
                ttft_ms=None if target.ttft_s is None else 1000 * target.ttft_s,
                utilisation=target.utilisation,
                reason=target.reason.value,
                sentence=target.sentence,
                since_version=route.version,
            )
            for target in route.targets
            if engine_id in (None, target.engine_id)
        ]
        if engine_id is not None:
            excluded |= {e.sentence: e for e in route.excluded if e.engine_id == engine_id}
    rows.sort(key=lambda row: (-row.rps, -row.weight_ppm, row.cluster, row.model, row.request_class, row.engine_id))
    commit = snapshot.commit
    left_out = max(0, len(rows) - limit)
    return WeightRows(commit.version, commit.tick_ms, tuple(rows[:limit]), left_out, tuple(excluded.values()))
