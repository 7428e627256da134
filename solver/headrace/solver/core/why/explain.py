"""Why does a cluster send an engine what it does? A price in five parts, what binds, what would help.

    network + engine at its load + congestion externality + capacity scarcity + move = marginal price

For an engine that takes traffic the marginal price is the route's dual: one more request per second costs exactly that;
more only where the weights stand though a slightly better answer is known (`stay_within`).
For one that takes none it is what a first request would cost, and its gap to the dual is the break-even.
"""

from dataclasses import replace

import numpy as np

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import Excluded, Reason
from headrace.solver.core.answer.refusals import Refusals
from headrace.solver.core.problem import Outcomes
from headrace.solver.core.program.curves import curves_of
from headrace.solver.core.program.eligibility import exclusion
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.tick import Tick
from headrace.solver.core.why.explain_words import Asked, sentences_of
from headrace.solver.core.why.explanation import Explanation
from headrace.solver.core.why.price_terms import (
    binding_constraints,
    plain,
    price_interval,
    price_terms,
    rejected_alternatives,
    replica_worth,
    replica_worth_rps,
    shed_of_part,
)


def explain(
    tick: Tick, cluster: str, engine_id: str, model: str | None = None, request_class: str | None = None
) -> Explanation:
    """Explain one engine's weight in one route of a tick.

    Raises:
        InvalidInputError: the tick only held, there is no such route or engine, or several routes match.
    """
    if tick.decision is None:
        raise InvalidInputError("explain", (f"nothing was decided: {tick.snapshot.commit.sentence}",))
    layout = tick.decision.layout
    row = _row(layout, cluster, model, request_class)
    ids = [engine.engine_id for engine in layout.engines]
    if engine_id not in ids:
        raise InvalidInputError("explain", (f"engine is {engine_id!r}; there are {_listed(ids)}",))
    return _explain(tick, row, ids.index(engine_id))


def _row(layout: Layout, cluster: str, model: str | None, request_class: str | None) -> int:
    wanted = (cluster, model, request_class)
    found = [
        i
        for i, row in enumerate(layout.rows)
        if all(want is None or want == has for want, has in zip(wanted, row.route, strict=True))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        choices = _listed([str(layout.rows[i].route) for i in found])
        raise InvalidInputError("explain", (f"{len(found)} routes match; name model and class: {choices}",))
    raise InvalidInputError(
        "explain", (f"no route from {cluster!r} matches; there are {_listed([str(r.route) for r in layout.rows])}",)
    )


def _explain(tick: Tick, row: int, engine: int) -> Explanation:
    assert tick.decision is not None  # noqa: S101 - the one caller has looked
    layout, plan, settings = tick.decision.layout, tick.decision.plan, tick.decision.settings
    engine_id, record = layout.engines[engine].engine_id, tick.snapshot.routes[row]
    curves = plan.curves or curves_of(layout, settings)
    pair = _pair(layout, row, engine)
    others = tuple(x for x in Refusals(layout).of(row) if x.engine_id != engine_id)
    explanation = Explanation(
        route=layout.rows[row].route,
        engine_id=engine_id,
        weight_ppm=next((t.weight_ppm for t in record.targets if t.engine_id == engine_id), 0),
        demand_rps=float(layout.rows[row].demand_rps),
        terms=None,
        route_marginal_ms=float(plan.prices.row[row] * layout.row_work[row]) if plan.prices is not None else None,
        utilisation=None,
        excluded=_excluded(layout, row, engine) if pair is None else None,
        binding=binding_constraints(layout, plan, row),
        alternatives=rejected_alternatives(layout, plan, settings, row, pair),
        others_excluded=others,
        replica_worth_ms_rps=None,
        shed_ratio=record.shed_ratio,
        protections=tuple(p for p in tick.snapshot.commit.protections if p.engine_id == engine_id),
        failed_share=failed_share(layout.engines[engine].outcomes),
    )
    if pair is not None:
        group = int(layout.engine_group[engine])
        explanation = replace(
            explanation,
            terms=price_terms(layout, plan, settings, curves, (pair, engine)),
            utilisation=float(plan.load[group] / layout.group_capacity[group]),
            replica_worth_ms_rps=replica_worth(layout, plan, curves, engine),
            replica_worth_rps=replica_worth_rps(layout, plan, engine),
            price_interval_ms=price_interval(layout, plan, curves, (pair, engine)),
        )
    asked = Asked(
        float(layout.requests(layout.demand - plan.shed).sum()),
        shed_of_part(layout, plan, engine),
        layout.rows[row].work,
        plain(layout),
        layout.engines[engine].outcomes,
        settings.error_tolerated,
    )
    return replace(explanation, sentences=sentences_of(explanation, asked))


def failed_share(ended: Outcomes | None) -> float | None:
    """Give the share of requests that failed, 0..1; None where nobody counted, or none ended."""
    return ended.failed / ended.requests if ended is not None and ended.requests else None


def _pair(layout: Layout, row: int, engine: int) -> int | None:
    first, pools = int(layout.row_start[row]), layout.pair_pool[layout.pairs_of(row)]
    hit = np.flatnonzero(pools == layout.engine_pool[engine])
    return first + int(hit[0]) if len(hit) else None


def _excluded(layout: Layout, row: int, engine: int) -> Excluded:
    spec = layout.engines[engine]
    found = exclusion(layout.problem, layout.rows[row], spec)
    if found is None:
        return Excluded(spec.engine_id, Reason.UNKNOWN, "no reason is known")
    return Excluded(spec.engine_id, found.reason, found.sentence)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
