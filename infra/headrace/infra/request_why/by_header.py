"""What a decision header alone says of a request, held against the weights: everything but the session's slot.

    header ─► what was decided ─► is this the version it was decided by? ─► the engine in each route that may be meant
                                                                           ─► the other engine, if one is asked about
                                                                           ─► what more is needed to say the rest

The header names no route, so each route that fits it is told: those with the engine in it where one was chosen, those
that answer like it where none was. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.dataplane.decision import Outcome
from headrace.infra.gateway.core.decision_header import DecisionHeader
from headrace.infra.request_why.sentences import excluded_words, of_excluded, of_target, with_reason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, RouteWeights, Snapshot, Target

MAX_ROUTES = 4
"""So many routes are told; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which routes are meant (None: any), and the engine that it might have been rather."""

    model: str | None = None
    cluster: str | None = None
    request_class: str | None = None
    rather_than: str | None = None

    def takes(self, route: RouteWeights) -> bool:
        """Say whether a route may be the one."""
        wanted = ((self.model, route.model), (self.cluster, route.cluster), (self.request_class, route.request_class))
        return all(want in (None, has) for want, has in wanted)


def explain_by_header(
    header: DecisionHeader, snapshot: Snapshot, asked: Asked, alias: Callable[[str], str]
) -> tuple[str, ...]:
    """Say what the weights say of a header.

    Args:
        header: what a gateway decided.
        snapshot: the weights, of that version or of another, which is then said.
        asked: which routes are meant, and which other engine is asked about.
        alias: the name that an engine goes by in headers.

    Raises:
        InvalidInputError: no route is of the model, cluster and class, or none of them knows the other engine.
    """
    meant = [route for route in snapshot.routes if asked.takes(route)]
    if not meant:
        here = ", ".join(str(route.route) for route in snapshot.routes[:20]) or "no routes"
        wanted = "|".join(part or "any" for part in (asked.cluster, asked.model, asked.request_class))
        raise InvalidInputError("route", (f"{wanted} is not in the snapshot, which has {here}",))
    fitting = [route for route in meant if _fits(route, header, alias)]
    _require_known(asked.rather_than, fitting or meant)
    says = list(_of_version(header, fitting or meant, snapshot))
    if not fitting:
        who = f"an engine called {header.engine}" if header.engine is not None else f"to answer {header.outcome} with"
        says.append(f"No route of this snapshot has {who}; the request was of another snapshot, or of another cluster.")
    for route in fitting[:MAX_ROUTES]:
        says += _of_route(route, header, asked, alias)
    if len(fitting) > MAX_ROUTES:
        says.append(f"{len(fitting) - MAX_ROUTES} more routes fit the header: name --cluster and --model.")
    return (*says, _what_more(header))


def _fits(route: RouteWeights, header: DecisionHeader, alias: Callable[[str], str]) -> bool:
    if header.engine is not None:
        return any(alias(t.engine_id) == header.engine for t in route.targets)
    return True


def _require_known(rather_than: str | None, routes: Sequence[RouteWeights]) -> None:
    if rather_than is None:
        return
    known = {e.engine_id for route in routes for some in (route.targets, route.excluded) for e in some}
    if rather_than not in known:
        names = ", ".join(sorted(known)) or "no engine"
        raise InvalidInputError("--rather-than", (f"{rather_than!r}; the routes that may be meant know {names}",))


def _of_version(header: DecisionHeader, routes: Sequence[RouteWeights], snapshot: Snapshot) -> Iterator[str]:
    if header.epoch is None or any((r.epoch, r.version) == (header.epoch, header.version) for r in routes):
        return
    here = f"{snapshot.commit.epoch}.{snapshot.commit.version}"
    yield (
        f"Careful: it was decided by version {header.epoch}.{header.version}, and these weights are of {here}; "
        "what follows may have been different then."
    )


def _of_route(route: RouteWeights, header: DecisionHeader, asked: Asked, alias: Callable[[str], str]) -> Iterator[str]:
    yield f"Route {route.route}, weights of epoch {route.epoch} version {route.version}: {route.sentence}"
    chosen = next((t for t in route.targets if header.engine is not None and alias(t.engine_id) == header.engine), None)
    if chosen is None:
        if route.shed_ratio > 0.0:
            yield f"{route.shed_ratio:.2%} of it is shed, whole sessions at a time, by the hash of their key."
        yield from excluded_words(route)
        return
    yield of_target(chosen)
    if asked.rather_than is not None:
        yield _rather(route, chosen, asked.rather_than)
        return
    others = sorted((t for t in route.targets if t is not chosen), key=lambda t: (-t.weight_ppm, t.engine_id))[:3]
    for target in others:
        yield f"{target.engine_id} has {target.weight_ppm / PPM:.2%}: {with_reason(target.sentence, target.reason)}."
    yield from excluded_words(route)


def _rather(route: RouteWeights, chosen: Target, name: str) -> str:
    out = next((e for e in route.excluded if e.engine_id == name), None)
    if out is not None:
        return f"Not to {of_excluded(out)}"
    other = next((t for t in route.targets if t.engine_id == name), None)
    if other is None:
        return f"{name} is no engine of this route."
    if other is chosen:
        return f"It did go to {name}."
    gap = _gap_words(chosen, other)
    if other.weight_ppm == 0:
        return f"Not to {other.engine_id}, which has no weight: {with_reason(other.sentence, other.reason)}{gap}."
    return (
        f"Not to {other.engine_id}, which has {other.weight_ppm / PPM:.2%} of the sessions: "
        f"{with_reason(other.sentence, other.reason)}{gap}. Which ones these are, the hash of the key decides."
    )


def _gap_words(chosen: Target, other: Target) -> str:
    if chosen.engine_price_ms is None or other.engine_price_ms is None:
        return ""
    gap_ms = _price_ms(other) - _price_ms(chosen)
    return f", {abs(gap_ms):.1f} ms {'dearer' if gap_ms >= 0.0 else 'cheaper'} for one more request"


def _price_ms(target: Target) -> float:
    return 1000 * target.network_s + (target.engine_price_ms or 0.0)


def _what_more(header: DecisionHeader) -> str:
    if header.engine is None and header.outcome is not Outcome.SHED:
        return "A session's key would say no more of this."
    return (
        "Which slot the session has, and what weight would move it, its key says: add --key, the value of the "
        "request's x-session-id header, and --model."
    )
