"""No engine fails so many more requests than its peers that the solver gives it less."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.mending import explain
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.solver.core.protections.penalty import ERRORS

FOLLOWS_FROM = ("brokers", "engines", "snapshot")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give the engines that are penalised for failed requests, the worst of them in the solver's own words."""
    if picture.commit is None:
        return
    found = {p.engine_id: p for p in picture.commit.protections if p.protection == ERRORS}
    if not found:
        return
    worst = min(found, key=lambda name: (found[name].factor, name))
    yield warning(
        worst if len(found) == 1 else "engines",
        f"{count(len(found), 'engine')} fail more requests than their peers, or did: {some(found)}; "
        f"{worst}: {found[worst].sentence}",
        "it gets that much less traffic until its requests succeed, and more again little by little after that",
        explain(picture, worst),
        f'headrace drain {worst} --reason "fails requests" --for 2h',
        value=round(found[worst].factor, 3),
        bound=1,
    )
