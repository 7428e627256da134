"""A weight's report from the topics: the tick is found, computed again, and explained. Reads, and writes nothing."""

from headrace.infra.configuration.config import Config
from headrace.infra.past_tick.again import compute_again
from headrace.infra.past_tick.find import find_tick
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport, route_of, weight_report, with_one_more
from headrace.infra.weight_why.steps import weight_steps
from headrace.infra.what_if.answer import what_if
from headrace.infra.what_if.edits import Asked, parse_edits
from headrace.schemas.codec import SchemaSource
from headrace.solver.glop import Glop


def ask_why(
    config: Config, asked: AskedWeight, wanted: Wanted, now_ms: int, history_ms: int, registry: SchemaSource | None
) -> WeightReport:
    """Give why an engine has its weight at a tick, with the steps of the `history_ms` before it.

    Raises:
        UnreachableError, MissingTopicError: the broker does not answer, or a topic is not there.
        NoTickError, NotDecidedError: history does not hold the tick, or it cannot be computed again.
        InvalidInputError: there is no such route or engine, or several routes match.
    """
    found, ticks = find_tick(config, wanted, now_ms, registry=registry, history_ms=history_ms)
    recorded = found.recorded.snapshot
    route = route_of(recorded, asked)
    steps = weight_steps((tick.snapshot for tick in ticks), route.route, asked.engine_id)
    lp = Glop()
    again = compute_again(found, lp)
    report = weight_report(again, recorded, asked, steps, proved=found.proved)
    if report.terms_ms is None:
        return report
    edits = parse_edits(Asked(replicas=(f"{asked.engine_id}=1",)), again.problem)
    return with_one_more(report, what_if(again, edits, found.settings, lp, proved=found.proved))
