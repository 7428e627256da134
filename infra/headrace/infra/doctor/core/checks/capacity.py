"""The fleet serves all that is asked for: nothing is shed."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.picture import Picture
from headrace.schemas.weights import SnapshotStatus

FOLLOWS_FROM = ("brokers", "engines", "network", "load", "profiles", "units", "sources", "lag", "freeze")

SHED_SHARE = 0.001


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what the newest tick sheds."""
    if not picture.decisions or not sheds(picture):
        return
    last = picture.decisions[-1]
    fullest = max(last.pool_duals, key=lambda pool: pool.price_ms, default=None)
    where = "" if fullest is None else f"; the dearest pool is {fullest.pool} at {fullest.price_ms:.0f} ms"
    specs = () if picture.view is None else tuple(picture.view.specs.values())
    near = [spec.engine_id for spec in specs if fullest is not None and fullest.pool.startswith(f"{spec.site} ")]
    engine = min(near or [spec.engine_id for spec in specs], default="ENGINE")
    yield fault(
        "capacity",
        f"version {last.version} sheds {last.shed_rps:.1f} of {last.demand_rps:.1f} RPS; capacity is "
        f"{last.capacity_rps:.1f} RPS{where}",
        "requests are refused, the least important tier first: add replicas, or find out why engines are out",
        f"headrace what-if --add-replicas {engine}=1",
        "headrace tail decisions --since 5m --no-follow",
        value=round(last.shed_rps, 2),
        bound=round(SHED_SHARE * last.demand_rps, 3),
    )


def sheds(picture: Picture) -> bool:
    """Say whether the newest tick refuses requests."""
    last = picture.decisions[-1] if picture.decisions else None
    return last is not None and last.shed_rps > SHED_SHARE * last.demand_rps


def holds(picture: Picture) -> bool:
    """Say whether the newest tick left the weights before it as they were."""
    last = picture.decisions[-1] if picture.decisions else None
    return last is not None and last.status is SnapshotStatus.HELD
