"""`headrace route`: ask a snapshot file which engine a request would get, as a gateway would, without any broker."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.dataplane.decision import Decision
    from headrace.dataplane.router import Router
    from headrace.schemas.weights import RouteWeights, Snapshot

MAX_COUNT = 10_000_000
SHED = "SHED"


@click.command()
@click.option("--snapshot", "path", required=True, type=click.Path(path_type=Path), help="Snapshot file (JSON).")
@click.option("--model", required=True, help="Model that the request asks for.")
@click.option("--cluster", help="Where the request enters; may be left out where only one cluster routes the model.")
@click.option("--class", "request_class", default="default", show_default=True, help="Request class.")
@click.option("--key", help="Session key; the same key gets the same engine.")
@click.option("--count", type=click.IntRange(1, MAX_COUNT), help="Route this many different keys; count who gets them.")
@click.option("--down", multiple=True, metavar="ENGINE", help="Take this engine for dead; may be given again.")
@click.option("--at-ms", type=int, help="Instant of the request, ms since the epoch; default: the snapshot's tick.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    path: Path,
    model: str,
    cluster: str | None,
    request_class: str,
    key: str | None,
    count: int | None,
    down: tuple[str, ...],
    at_ms: int | None,
    as_json: bool,
) -> None:
    """Say which engine a request gets by the weights in a snapshot file, and why.

    With --count, route that many different keys: each engine's share of those routed stands beside its weight, and the
    share that was shed of all keys beside what the snapshot sheds.

    Example: headrace route --snapshot weights.json --cluster tokyo --model llama-3.1-8b --count 100000
    """
    from headrace.dataplane.router import Router
    from headrace.dataplane.settings import DataPlaneSettings
    from headrace.schemas.snapshot_file import read_snapshot

    if key is not None and count is not None:
        raise click.UsageError("--key is one session, --count makes its own keys: give one of them")
    snapshot = read_snapshot(path)
    weights = _find(snapshot, model, cluster, request_class)
    router = Router(DataPlaneSettings(), weights.cluster)
    router.apply(snapshot)
    for engine_id in down:
        router.set_health(engine_id, up=False)
    now_ms = snapshot.commit.tick_ms if at_ms is None else at_ms
    if count is None:
        decision = router.route(model, request_class, key, now_ms=now_ms)
        _print_decision(weights, decision, as_json=as_json)
    else:
        decisions = _route_many(router, weights, count, now_ms)
        _print_shares(weights, decisions, count, as_json=as_json)


def _find(snapshot: "Snapshot", model: str, cluster: str | None, request_class: str) -> "RouteWeights":
    """Give the route that is meant, or say what the snapshot has instead."""
    from headrace.schemas.errors import InvalidInputError

    def among(values: set[str], option: str, wanted: str | None, of: str) -> str:
        here = ", ".join(sorted(values)) or "no routes"
        if wanted is None and len(values) == 1:
            return values.pop()
        if wanted is None:
            raise InvalidInputError("route", (f"{option} is not given; the snapshot has {here}{of}",))
        if wanted not in values:
            raise InvalidInputError("route", (f"{option} is {wanted!r}; the snapshot has {here}{of}",))
        return wanted

    among({r.model for r in snapshot.routes}, "--model", model, "")
    of_model = [r for r in snapshot.routes if r.model == model]
    cluster = among({r.cluster for r in of_model}, "--cluster", cluster, f" for model {model!r}")
    at_cluster = {r.request_class: r for r in of_model if r.cluster == cluster}
    among(set(at_cluster), "--class", request_class, f" for model {model!r} at cluster {cluster!r}")
    return at_cluster[request_class]


def _route_many(router: "Router", weights: "RouteWeights", count: int, now_ms: int) -> "Counter[tuple[str, str]]":
    """Route the keys `key-0`, `key-1`, ...; count the engines, or the reasons where there was none."""
    decisions: Counter[tuple[str, str]] = Counter()
    for i in range(count):
        d = router.route(weights.model, weights.request_class, f"key-{i}", now_ms=now_ms)
        decisions[d.outcome.value, d.reason.value if d.engine_id is None else d.engine_id] += 1
    return decisions


def _print_decision(weights: "RouteWeights", decision: "Decision", *, as_json: bool) -> None:
    from headrace.schemas.plain import to_plain

    if as_json:
        click.echo(orjson.dumps({"route": str(weights.route)} | to_plain(decision)))
        return
    if decision.engine_id is None:
        click.echo(f"{decision.outcome}: {decision.reason}; try again in {decision.retry_after_s:g} s")
    else:
        address = "" if decision.address is None else f" at {decision.address}"
        click.echo(f"{decision.engine_id}{address} ({decision.reason})")
    click.echo(f"{weights.route}, weights of epoch {decision.epoch} version {decision.version}")
    if weights.sentence:
        click.echo(weights.sentence)


def _print_shares(weights: "RouteWeights", decisions: "Counter[tuple[str, str]]", count: int, *, as_json: bool) -> None:
    rows = _share_rows(weights, decisions)
    refused = {what: n for (outcome, what), n in sorted(decisions.items()) if outcome != "ROUTED"}
    routed = count - sum(refused.values())
    if as_json:
        found = {"route": str(weights.route), "count": count, "routed": routed, "engines": rows, "refused": refused}
        click.echo(orjson.dumps(found | {"shed": {"expected": weights.shed_ratio, "share": _shed(refused) / count}}))
        return
    _print_share_table(weights, rows, refused, count)


def _print_share_table(
    weights: "RouteWeights", rows: "Sequence[dict[str, str | float | int]]", refused: "dict[str, int]", count: int
) -> None:
    width = max([len("not routed"), *(len(str(row["engine_id"])) for row in rows), *map(len, refused)])
    click.echo(f"{weights.route}: {count} keys by the weights of epoch {weights.epoch} version {weights.version}")
    click.echo(f"{'engine':<{width}}  {'weight':>9}  {'of routed':>9}  {'keys':>9}")
    for row in rows:
        click.echo(f"{row['engine_id']:<{width}}  {row['weight']:>9.4%}  {row['share']:>9.4%}  {row['keys']:>9}")
    shed = {SHED: _shed(refused)} if weights.shed_ratio > 0.0 else {}
    if refused | shed:
        click.echo(f"{'not routed':<{width}}  {'planned':>9}  {'of all':>9}  {'keys':>9}")
    for what, n in (refused | shed).items():
        planned = f"{weights.shed_ratio:.4%}" if what == SHED else ""
        click.echo(f"{what:<{width}}  {planned:>9}  {n / count:>9.4%}  {n:>9}")


def _shed(refused: "dict[str, int]") -> int:
    return refused.get(SHED, 0)


def _share_rows(
    weights: "RouteWeights", decisions: "Counter[tuple[str, str]]"
) -> "Sequence[dict[str, str | float | int]]":
    """Give a row an engine; `share` is of the keys that were routed, as `weight` is of the traffic that is served."""
    ppm = {target.engine_id: target.weight_ppm for target in weights.targets}
    routed = {engine: n for (outcome, engine), n in decisions.items() if outcome == "ROUTED"}
    total = max(1, sum(routed.values()))
    return [
        {
            "engine_id": engine,
            "weight": ppm.get(engine, 0) / 1_000_000,
            "share": routed.get(engine, 0) / total,
            "keys": routed.get(engine, 0),
        }
        for engine in sorted(ppm.keys() | routed.keys())
    ]
