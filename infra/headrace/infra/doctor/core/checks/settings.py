"""The configuration can be used, fits what it meets, and is what the solver itself runs with."""

import dataclasses
from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.effective import settings_of
from headrace.solver.settings import SolverSettings

FOLLOWS_FROM = ("brokers",)

REPLICATION = 3


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what of the configuration is wrong by itself, or for this fleet and these brokers."""
    for problem in picture.config_problems:
        yield fault(
            "configuration",
            problem,
            "whatever reads it does not start",
            "headrace doctor --check-config",
        )
    yield from _periods(picture)
    nodes = {broker.node for broker in picture.brokers if broker.node is not None}
    replication = picture.setup.topics.replication
    if len(nodes) >= REPLICATION and replication < 2:
        yield warning(
            "topics.replication",
            f"topics.replication is {replication} with {len(nodes)} brokers; at least 2",
            "the loss of a broker loses weights and states; it is set for topics that are yet to be created",
            f"headrace topics apply --set topics.replication={REPLICATION}",
            value=replication,
            bound=2,
        )
    yield from _solver_runs_with(picture)


def _periods(picture: Picture) -> Iterator[Finding]:
    streams, solver, view = picture.setup.streams, picture.setup.solver, picture.view
    periods = {s.engine_id: s.period_ms for s in view.engines.values() if s.period_ms} if view is not None else {}
    slow = {name: period for name, period in periods.items() if 2 * period > streams.window_ms}
    if slow:
        worst = max(slow.values())
        yield warning(
            "streams.window_ms",
            f"streams.window_ms is {streams.window_ms}; at least {2 * worst}, twice the {duration(worst)} between two "
            f"reports of {some(slow)}",
            "a window holds one report or none: latencies jump, and coverage is low",
            f"headrace streams --set streams.window_ms={3 * worst}",
            value=streams.window_ms,
            bound=2 * worst,
        )
    late = {name: period for name, period in periods.items() if 2 * period > solver.expired_after_ms}
    if late:
        worst = max(late.values())
        yield warning(
            "solver.expired_after_ms",
            f"solver.expired_after_ms is {solver.expired_after_ms}; at least {2 * worst}, twice the "
            f"{duration(worst)} between two reports of {some(late)}",
            "one lost report takes an engine out",
            f"headrace solver --set solver.expired_after_ms={3 * worst}",
            value=solver.expired_after_ms,
            bound=2 * worst,
        )


def _solver_runs_with(picture: Picture) -> Iterator[Finding]:
    if picture.settings_text is None:
        return
    try:
        running = settings_of(picture.settings_text)
    except InvalidInputError as error:
        yield warning(
            "solver",
            f"the solver runs with settings that this build does not know: {error.problems[0]}",
            "it is of another version: what is judged here may not be what it does",
            "headrace --version",
        )
        return
    ours = picture.setup.solver
    names = [field.name for field in dataclasses.fields(SolverSettings)]
    differing = [name for name in names if getattr(running, name) != getattr(ours, name)]
    if differing:
        first = differing[0]
        theirs, own = getattr(running, first), getattr(ours, first)
        yield warning(
            "solver",
            "the solver runs with other settings than this configuration: "
            f"{some(f'solver.{name}' for name in differing)}; solver.{first} is {theirs!r} there and {own!r} here",
            "it was started with other flags, or before the file was changed: start it anew, or use its configuration",
            "headrace solver",
            value=theirs,
            bound=own,
        )
