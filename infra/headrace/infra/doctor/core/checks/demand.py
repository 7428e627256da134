"""Every gateway still reports what arrives: no route's demand is held at a rate that nobody has confirmed."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, duration, some
from headrace.schemas.topics import STATE_DEMAND
from headrace.solver.core.inputs.silence import hearing_of

FOLLOWS_FROM = ("brokers", "workers", "lag", "sources", "dead_letters", "clocks")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give the routes whose demand is held."""
    view = picture.view
    if view is None or not view.specs:
        return
    hearing = hearing_of(view, picture.setup.solver, now_ms)
    held = {
        str(state.route): now_ms - state.last_signal_ms
        for state in view.demands.values()
        if state.smoothed_rps and hearing.demand_expired(state)
    }
    if held:
        worst = max(held.values())
        yield warning(
            some(held),
            f"demand of {count(len(held), 'route')} is held at its last known rate, told {duration(worst)} ago; at "
            f"most {duration(picture.setup.solver.expired_after_ms)}: {some(held)}",
            "its gateway reports no more; it may still send, so nobody is moved onto its capacity",
            "headrace gateway",
            value=worst,
            bound=picture.setup.solver.expired_after_ms,
        )
    if not view.demands and view.engines and picture.was_read(STATE_DEMAND):
        yield warning(
            "demand",
            "nobody reports demand: 0 routes; at least 1",
            "nothing is planned for: weights are by latency of an idle fleet",
            "headrace gateway",
            value=0,
            bound=1,
        )
