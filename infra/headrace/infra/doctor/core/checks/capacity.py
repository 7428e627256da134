"""The fleet serves all that is asked for: nothing is shed."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.shortage import SHED_SHARE, causes, nearest_engine, refuses, replicas_for
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import SnapshotStatus

FOLLOWS_FROM = ("brokers", "engines", "network", "load", "profiles", "units", "sources", "lag", "freeze")

MOST_CAUSES = 4
_UNCHANGED = "neither a cluster's demand nor an engine's capacity has changed in the last minutes"


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give what the newest tick sheds, and what of demand and capacity has changed."""
    if not picture.decisions or not sheds(picture):
        return
    last, found = picture.decisions[-1], causes(picture, now_ms)
    why = "; ".join(cause.sentence for cause in found[:MOST_CAUSES])
    engine = nearest_engine(picture, None) or _of_dearest_pool(picture, last)
    more = f"headrace what-if --add-replicas {engine}={replicas_for(picture, engine, last.shed_rps)}"
    yield fault(
        "capacity",
        f"version {last.version} sheds {last.shed_rps:.1f} of {last.demand_rps:.1f} RPS; capacity is "
        f"{last.capacity_rps:.1f} RPS: {why or _UNCHANGED}",
        "requests are refused, the least important tier first: "
        + ("mend what has changed, or add replicas" if found else "add replicas where those are near that ask"),
        *(found[0].mend if found and found[0].mend else (more,)),
        "headrace tail decisions --since 5m --no-follow",
        value=round(last.shed_rps, 2),
        bound=round(SHED_SHARE * last.demand_rps, 3),
    )


def _of_dearest_pool(picture: Picture, last: SolveRecord) -> str:
    """Give an engine of the pool of which more is worth the most; any where no pool has a price."""
    dearest = max(last.pool_duals, key=lambda pool: pool.price_ms, default=None)
    specs = () if picture.view is None else tuple(picture.view.specs.values())
    near = [spec.engine_id for spec in specs if dearest is not None and dearest.pool.startswith(f"{spec.site} ")]
    return min(near or [spec.engine_id for spec in specs], default="ENGINE")


def sheds(picture: Picture) -> bool:
    """Say whether the newest tick refuses requests."""
    return picture.decisions is not None and any(map(refuses, picture.decisions[-1:]))


def holds(picture: Picture) -> bool:
    """Say whether the newest tick left the weights before it as they were."""
    last = picture.decisions[-1] if picture.decisions else None
    return last is not None and last.status is SnapshotStatus.HELD
