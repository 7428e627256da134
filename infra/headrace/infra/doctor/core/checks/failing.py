"""No engine fails so many more requests than its peers that the solver gives it less, nor many where it cannot."""

import math
from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import explain
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.solver.core.inputs.measure import outcomes
from headrace.solver.core.problem import Outcomes
from headrace.solver.core.protections.penalty import ERRORS

FOLLOWS_FROM = ("brokers", "engines", "snapshot")
CLEARLY = 3.0
"""Deviations of a count of failures by which it is above what chance makes of the bound."""


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give the engines that are penalised for failed requests, in the solver's own words, and those that are not."""
    if picture.commit is None:
        return
    found = {p.engine_id: p for p in picture.commit.protections if p.protection == ERRORS}
    if found:
        worst = min(found, key=lambda name: (found[name].factor, name))
        fail = "fails more requests than its peers, or did" if len(found) == 1 else "fail more than their peers, or did"
        yield warning(
            worst if len(found) == 1 else "engines",
            f"{count(len(found), 'engine')} {fail}: {some(found)}; {worst}: {found[worst].sentence}",
            "it gets that much less traffic until its requests succeed, and more again little by little after that; "
            "it keeps what nobody else has room for, and all of it where most engines fail",
            *_commands(picture, worst),
            value=round(found[worst].factor, 3),
            bound=1,
        )
    yield from _unpenalised(picture, frozenset(found), now_ms)


def _unpenalised(picture: Picture, penalised: frozenset[str], now_ms: int) -> Iterator[Finding]:
    """Give the engines that fail many requests, and of which the solver says nothing: all fail alike."""
    settings = picture.setup.solver
    bound = min(1.0, settings.error_ratio * settings.error_tolerated)
    failing = {
        name: ended
        for name, ended in _ended(picture, now_ms - settings.expired_after_ms).items()
        if name not in penalised and ended.failed - CLEARLY * math.sqrt(ended.failed) > bound * ended.requests
    }
    if not failing:
        return
    worst = min(failing, key=lambda name: (-failing[name].failed / failing[name].requests, name))
    ended = failing[worst]
    share = ended.failed / ended.requests
    keep = "fails requests and keeps its traffic" if len(failing) == 1 else "fail requests and keep their traffic"
    yield warning(
        worst if len(failing) == 1 else "engines",
        f"{count(len(failing), 'engine')} {keep}: {some(failing)}; {worst}: {ended.failed} of {ended.requests} "
        f"requests failed in {ended.span_s:.0f} s, {100 * share:.0f} %; at most {100 * bound:.0f} %",
        "the solver takes traffic only from engines that fail more than others of their pool (same site, models and "
        "capabilities; in a pool of one or two, others of the same models): here all fail about alike, or too little "
        "is seen of them yet",
        *_commands(picture, worst),
        value=round(share, 3),
        bound=round(bound, 3),
    )


def _ended(picture: Picture, since_ms: int) -> dict[str, Outcomes]:
    """Give how the requests of each engine ended, of those that were heard of since then."""
    states = () if picture.view is None else picture.view.engines.values()
    told = {
        state.engine_id: outcomes(state.outcomes)
        for state in states
        if state.outcomes is not None and state.last_signal_ms >= since_ms
    }
    return {name: ended for name, ended in told.items() if ended is not None and ended.requests}


def _commands(picture: Picture, engine_id: str) -> tuple[str, str]:
    return explain(picture, engine_id), f'headrace drain {engine_id} --reason "fails requests" --for 2h'
