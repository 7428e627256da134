"""Between every cluster and every site the round trip is known."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import why
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.schemas.weights import Reason
from headrace.solver.core.inputs.assemble import assemble

FOLLOWS_FROM = ("brokers", "workers", "lag", "sources", "dead_letters")

_BY_REASON = (Reason.NETWORK_UNKNOWN, Reason.NETWORK_LOST)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give the links that are lost, and those that no snapshot knows."""
    view = picture.view
    if view is None or not view.specs:
        return
    problem = assemble(view, picture.setup.solver, now_ms)
    clusters = {row.route.cluster for row in problem.rows}
    sites = {engine.engine_id: engine.site for engine in problem.engines}
    lost = {f"{a} to {b}" for (a, b), rtt in problem.network_s.items() if rtt is None and b in sites.values()}
    said = {
        f"{route.cluster} to {sites[out.engine_id]}"
        for route in picture.routes.values()
        for out in route.excluded
        if out.reason in _BY_REASON and out.engine_id in sites
    }
    absent = {f"{c} to {s}" for c in clusters for s in sites.values() if (c, s) not in problem.network_s}
    # A probe that is seldom may lie before what was read: where there are snapshots, they say what was missing.
    unknown = (said if picture.routes else absent) - lost
    for links, state, means in (
        (lost, "lost: every probe of its window", "the path is down: that cluster sends nothing there"),
        (unknown & absent, "not known", "nobody publishes NetworkProbe for it: that cluster sends nothing there"),
    ):
        if links:
            yield warning(
                some(links),
                f"{count(len(links), 'link')} of {len(clusters) * len(set(sites.values()))} {state}: {some(links)}",
                means,
                why(picture, *min(links).split(" to ")),
                value=len(links),
                bound=0,
            )
