"""What `headrace explain` says, as one value; `to_plain` of it is its JSON. Prices in ms, flows in RPS. Pure.

the tick, computed again ─► why.explain ─► sentences, terms that add up, alternatives, binding constraints
its commit               ─► protections of the engines that the route may use
the snapshots before     ─► the steps of this weight, each with its likeliest cause
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.infra.past_tick.again import Again
from headrace.infra.weight_why.steps import WeightStep
from headrace.infra.what_if.answer import WhatIf
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import Excluded, Protected, RouteWeights, Snapshot
from headrace.solver.core.why.explain import explain
from headrace.solver.core.why.explain_words import acted_words, flow_words, one_more_words
from headrace.solver.core.why.explanation import Alternative, PriceTerms


@dataclass(frozen=True, slots=True)
class AskedWeight:
    """Which weight is meant; `model` and `request_class` may be left out where they are plain."""

    cluster: str
    engine_id: str
    model: str | None = None
    request_class: str | None = None


@dataclass(frozen=True, slots=True)
class OneMore:
    """All traffic before and after: its mean end to end, and what is shed; whether the weights have come to rest."""

    before_mean_ms: float
    after_mean_ms: float
    before_shed_rps: float
    after_shed_rps: float
    settled: bool


@dataclass(frozen=True, slots=True)
class WeightReport:
    """Why one engine has its weight in one route of one tick.

    Attributes:
        version: of the snapshot; `epoch`, `tick_ms` and `status` likewise.
        computed_again: whether computing the tick again gave the weights that were recorded.
        inputs_proved: whether the inputs were proved, by digest, to be those that the solver had read.
        route: `cluster|model|class`.
        weight_ppm: the engine's share of what the route serves, as it was recorded.
        sentences: the answer in plain sentences.
        terms_ms: the price of one more request, whose first five parts add up to the last; null where it is excluded,
            and where the tick only held.
        route_marginal_ms: what one more request of the route costs; null where the policy knows no prices.
        utilisation: the engine's planned load; null where it is excluded.
        excluded: why the engine may not be used, or null.
        binding: the constraints that hold the route where it is.
        alternatives: ways that carry nothing, nearest to being used first.
        others_excluded: the route's other excluded engines.
        replica_worth_ms_rps: the most that one more replica would take off the objective, ms x RPS; null where
            unknown, and where it may come to serve what is shed: the price of shedding is no latency.
        protections: that changed what the program was given of the route's engines, this engine's first.
        history: steps of this weight before the tick, oldest first.
        shed_rps: how much of the route's demand is shed.
        failed_share: the share of its requests that the engine failed in its window, 0..1; null where nobody counted.
        one_more_replica: the tick solved again with one more replica of the engine, until its weights stay, as `what-if
            --add-replicas` does; null where the engine is excluded, and where the tick only held.
        replica_worth_rps: how much of what is shed one more replica would serve, at least, RPS of work 1; null where
            unknown, and where a pin may be what refuses it.
    """

    version: int
    epoch: int
    tick_ms: int
    status: str
    computed_again: bool
    inputs_proved: bool
    route: str
    engine_id: str
    weight_ppm: int
    demand_rps: float
    sentences: tuple[str, ...]
    terms_ms: PriceTerms | None
    route_marginal_ms: float | None
    utilisation: float | None
    excluded: Excluded | None
    binding: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    others_excluded: tuple[Excluded, ...]
    replica_worth_ms_rps: float | None
    protections: tuple[Protected, ...]
    history: tuple[WeightStep, ...] = ()
    shed_rps: float = 0.0
    failed_share: float | None = None
    one_more_replica: OneMore | None = None
    replica_worth_rps: float | None = None


def weight_report(
    again: Again, recorded: Snapshot, asked: AskedWeight, history: Sequence[WeightStep], *, proved: bool
) -> WeightReport:
    """Put the answer together; what one more replica would come to is for `with_one_more`.

    Raises:
        InvalidInputError: there is no such route or engine, or several routes match.
    """
    commit = recorded.commit
    if again.tick.decision is None:
        return _held(recorded, asked, history, proved=proved)
    found = explain(again.tick, asked.cluster, asked.engine_id, asked.model, asked.request_class)
    route = next(r for r in recorded.routes if r.route == found.route)
    return WeightReport(
        version=commit.version,
        epoch=commit.epoch,
        tick_ms=commit.tick_ms,
        status=commit.status.value,
        computed_again=not again.differing,
        inputs_proved=proved,
        route=str(found.route),
        engine_id=found.engine_id,
        weight_ppm=_weight(route, found.engine_id),
        demand_rps=found.demand_rps,
        sentences=found.sentences,
        terms_ms=found.terms,
        route_marginal_ms=found.route_marginal_ms,
        utilisation=found.utilisation,
        excluded=found.excluded,
        binding=found.binding,
        alternatives=found.alternatives,
        others_excluded=found.others_excluded,
        replica_worth_ms_rps=found.replica_worth_ms_rps,
        protections=_protections(recorded, route, found.engine_id),
        history=tuple(history),
        # Of what this tick was asked for, as all else here: a record that stands has the demand of an older one.
        shed_rps=found.demand_rps * route.shed_ratio,
        failed_share=found.failed_share,
        replica_worth_rps=found.replica_worth_rps,
    )


def with_one_more(report: WeightReport, found: WhatIf) -> WeightReport:
    """Add what one more replica comes to, as a number and as a sentence."""
    before, after = found.before, found.after
    more = OneMore(before.mean_ms, after.mean_ms, before.shed_rps, after.shed_rps, found.settled)
    words = one_more_words(report.engine_id, (before.mean_ms, after.mean_ms), (before.shed_rps, after.shed_rps))
    return replace(report, one_more_replica=more, sentences=(*report.sentences, words))


def route_of(snapshot: Snapshot, asked: AskedWeight) -> RouteWeights:
    """Give the route that is meant.

    Raises:
        InvalidInputError: no route is, or several are.
    """
    wanted = (asked.cluster, asked.model, asked.request_class)
    found = [
        route
        for route in snapshot.routes
        if all(want in (None, has) for want, has in zip(wanted, route.route, strict=True))
    ]
    if len(found) == 1:
        return found[0]
    told = ", ".join(str(route.route) for route in (found or snapshot.routes)[:20])
    problem = f"{len(found)} routes match; name --model and --class: {told}"
    raise InvalidInputError("explain", (problem if found else f"no route matches; there are {told or 'none'}",))


def _held(recorded: Snapshot, asked: AskedWeight, history: Sequence[WeightStep], *, proved: bool) -> WeightReport:
    """Nothing was decided in this tick: say what it held, in the words that stand in it."""
    commit, route = recorded.commit, route_of(recorded, asked)
    target = next((t for t in route.targets if t.engine_id == asked.engine_id), None)
    out = next((e for e in route.excluded if e.engine_id == asked.engine_id), None)
    if target is None and out is None:
        known = ", ".join(sorted(e.engine_id for some in (route.targets, route.excluded) for e in some)[:20])
        raise InvalidInputError("explain", (f"engine is {asked.engine_id!r}; there are {known}",))
    weight = 0 if target is None else target.weight_ppm
    own = [p for p in commit.protections if p.engine_id == asked.engine_id]
    acted = acted_words(asked.engine_id, own, None, 1.0)
    why = out.sentence if target is None and out is not None else "" if target is None else target.sentence
    share = flow_words(weight, route.demand_rps, route.shed_ratio)
    kept = f"{route.route.cluster} keeps sending {asked.engine_id} {share}, as version {route.version} did: {why}."
    return WeightReport(
        version=commit.version,
        epoch=commit.epoch,
        tick_ms=commit.tick_ms,
        status=commit.status.value,
        computed_again=True,
        inputs_proved=proved,
        route=str(route.route),
        engine_id=asked.engine_id,
        weight_ppm=weight,
        demand_rps=route.demand_rps,
        sentences=(f"Nothing was decided in this tick: {commit.sentence}.", kept, *((acted,) if acted else ())),
        terms_ms=None,
        route_marginal_ms=route.marginal_ms,
        utilisation=None if target is None else target.utilisation,
        excluded=out,
        binding=(),
        alternatives=(),
        others_excluded=tuple(e for e in route.excluded if e.engine_id != asked.engine_id),
        replica_worth_ms_rps=None,
        protections=_protections(recorded, route, asked.engine_id),
        history=tuple(history),
        shed_rps=route.demand_rps * route.shed_ratio,
    )


def _weight(route: RouteWeights, engine_id: str) -> int:
    return next((t.weight_ppm for t in route.targets if t.engine_id == engine_id), 0)


def _protections(snapshot: Snapshot, route: RouteWeights, engine_id: str) -> tuple[Protected, ...]:
    open_ = {target.engine_id for target in route.targets}
    own = [p for p in snapshot.commit.protections if p.engine_id == engine_id]
    return (*own, *(p for p in snapshot.commit.protections if p.engine_id in open_ and p.engine_id != engine_id))
