"""Every engine of the fleet can take traffic: heard of lately, its state valid, healthy, with a ready replica."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from headrace.infra.doctor.core.checks.capacity import holds, sheds
from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import how_to_publish
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.schemas.topics import STATE_ENGINE
from headrace.schemas.weights import Reason
from headrace.solver.core.inputs.assemble import assemble

FOLLOWS_FROM = ("brokers", "workers", "lag", "sources", "dead_letters", "unknown_engines", "clocks")

_JUDGED_ELSEWHERE = (Reason.DRAINED, Reason.NO_PROFILE)
_MEANS: Mapping[Reason, str] = {
    Reason.STALE: "it, or what reads its metrics, is down or cannot reach Kafka; it gets no traffic",
    Reason.NO_STATE: "it gets no traffic until it is heard of; its engine_id must be the same in fleet and signals",
    Reason.INVALID_STATE: "too little of its window is covered: its signals come too seldom, or have just begun",
    Reason.UNHEALTHY: "it says so itself and gets no traffic: see to it, or take it out of the fleet if it is gone",
    Reason.NO_READY_REPLICA: "it gets no traffic: bring up a replica, or take it out of the fleet if it is gone",
}


START_MS = 30_000
"""So long after the first signals an engine need not be known."""
_STARTING = "; the first signals have just come: look again"
_WOULD = "would be taken out if weights were not HELD"
_HELD = "it keeps the traffic of the last good weights, whatever has become of it, until telemetry is back"


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give, by reason, the engines that the solver would exclude at this instant, and those of which it counts a part.

    With its own words for it. While requests are refused it is a fault that an engine is out: it is what they lack.
    """
    if picture.view is None or not picture.view.specs:
        return
    problem = assemble(picture.view, picture.setup.solver, now_ms)
    out: dict[Reason, dict[str, str]] = defaultdict(dict)
    for engine in problem.engines:
        if engine.exclusion is not None and engine.exclusion.reason not in _JUDGED_ELSEWHERE:
            out[engine.exclusion.reason][engine.engine_id] = engine.exclusion.sentence
    alive = sum(engine.exclusion is None for engine in problem.engines)
    heard_for_ms = picture.heard_for_ms
    starting = heard_for_ms is not None and heard_for_ms <= START_MS
    say = fault if (not alive and not starting) or sheds(picture) else warning
    if not picture.was_read(STATE_ENGINE):
        out.pop(Reason.NO_STATE, None)  # it may be in what was not read
    held = holds(picture)
    for reason, engines in sorted(out.items()):
        first = min(engines)
        yield say(
            first if len(engines) == 1 else reason.value,
            f"{count(len(engines), 'engine')} of {len(problem.engines)} {_WOULD if held else 'can take no traffic'}, "
            f"{reason}: "
            f"{some(engines)}; {first}: {engines[first]}",
            (_HELD if held else _MEANS.get(reason, "it gets no traffic")) + (_STARTING if starting else ""),
            *_mend(picture, reason, first),
            value=len(engines),
            bound=0,
        )
    parts = {each.engine_id: each for each in problem.engines if each.exclusion is None and each.factor < 1.0}
    if parts:
        first = min(parts, key=lambda name: (parts[name].factor, name))
        yield say(
            first if len(parts) == 1 else "part",
            f"{count(len(parts), 'engine')} of {len(problem.engines)} are counted with a part of their capacity: "
            f"{some(parts)}; {first} with {100 * parts[first].factor:.0f} %: {parts[first].factor_sentence}",
            "one that falls silent is on its way out; one that calls itself degraded is trusted with less",
            *how_to_publish(picture, first),
            value=round(parts[first].factor, 3),
            bound=1,
        )


def _mend(picture: Picture, reason: Reason, engine_id: str) -> tuple[str, ...]:
    if reason in (Reason.STALE, Reason.INVALID_STATE):
        return how_to_publish(picture, engine_id)
    if reason is Reason.NO_STATE:
        return (*how_to_publish(picture, engine_id), f"headrace fleet remove {engine_id}")
    return ("headrace signals states", f"headrace fleet remove {engine_id}")
