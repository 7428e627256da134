"""A weight's report from the topics: the tick is found, computed again, and explained. Reads, and writes nothing."""

from headrace.infra.configuration.config import Config
from headrace.infra.past_tick.again import compute_again
from headrace.infra.past_tick.find import find_tick
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport, route_of, weight_report
from headrace.infra.weight_why.steps import weight_steps
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
    return weight_report(compute_again(found, Glop()), recorded, asked, steps, proved=found.proved)
