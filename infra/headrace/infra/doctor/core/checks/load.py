"""Engines serve what they are stated to: none that is full was measured to serve less, and none has a long queue."""

from collections.abc import Iterator

from headrace.infra.doctor.core.checks.capacity import sheds
from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import explain
from headrace.infra.doctor.core.overload import HALE_SHARE, QUEUE_S, short_engines, stated_rps, waiting_s
from headrace.infra.doctor.core.picture import Picture

FOLLOWS_FROM = ("brokers", "workers", "units")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each engine that takes less than it should, and each before which requests stand in line."""
    if picture.view is None:
        return
    say = fault if sheds(picture) else warning
    short = short_engines(picture)
    for spec in sorted(picture.view.specs.values(), key=lambda each: each.engine_id):
        name, served, queue_s = spec.engine_id, short.get(spec.engine_id), waiting_s(picture, spec.engine_id)
        if served is not None:
            says = "its profile says" if spec.capacity_rps_per_replica is None else "the fleet file says"
            line = "" if not queue_s else f"; {queue_s * stated_rps(picture, name):.0f} requests wait in it"
            yield say(
                name,
                f"{name} takes {served.rps:.0f} RPS where {says} {served.stated_rps:.0f}{line}",
                "measured while it was full: it is throttled, shares its hardware, or its requests are longer than "
                "those it was measured with; what it cannot take goes elsewhere or is refused",
                explain(picture, name),
                f"headrace what-if --capacity {name}={served.stated_rps:g}",
                value=round(served.rps, 1),
                bound=round(HALE_SHARE * served.stated_rps, 1),
            )
        elif queue_s is not None and queue_s > QUEUE_S:
            yield say(
                name,
                f"{name} has {queue_s * stated_rps(picture, name):.0f} requests waiting, {queue_s:.1f} s of what it "
                f"serves; at most {QUEUE_S:g} s",
                "it is given more than it serves now: its times are those of its queue",
                explain(picture, name),
                value=round(queue_s, 2),
                bound=QUEUE_S,
            )
