"""The solver answers on its first rung, with an optimum that it proved, and in time for its next tick."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.weights import SnapshotStatus

FOLLOWS_FROM = ("brokers", "workers", "lag", "engines", "freeze", "profiles", "sources")

FIRST = ("DUAL", "SIFTED")
LOW_SHARE = 0.1
LAST_TICKS = 60
"""So many of the newest ticks are judged."""
MOST_GAP = 0.01
_REFUSED = "; where it raised, the solver's log has the whole of it: `the solve raised`"
_LOW = ("LAST_GOOD", "CAPACITY_WEIGHTED", "HOLD")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what of the newest ticks was not as it should be."""
    ticks = (picture.decisions or ())[-LAST_TICKS:]
    if not ticks:
        return
    yield from _status(picture, ticks)
    yield from _rungs(picture, ticks)
    gaps = [tick.gap for tick in ticks if tick.gap is not None]
    if gaps and gaps[-1] > MOST_GAP:
        yield warning(
            "gap",
            f"version {ticks[-1].version} is certified within {100 * gaps[-1]:.1f} %; at most {100 * MOST_GAP:g} %",
            "latency curves are cut into too few chords where engines are loaded",
            "headrace solver --set solver.segments=48 --set solver.anchors=4",
            value=gaps[-1],
            bound=MOST_GAP,
        )
    yield from _slow(picture, ticks)


def _status(picture: Picture, ticks: tuple[SolveRecord, ...]) -> Iterator[Finding]:
    last = ticks[-1]
    frozen = "frozen" in last.sentence
    if last.status is SnapshotStatus.HELD and not frozen:
        yield fault(
            "status",
            f"version {last.version} is HELD: {last.sentence}",
            "the weights before it stand, whatever engines and demand do"
            + (_REFUSED if last.sentence.startswith("the solve was refused") else ""),
            "headrace doctor --only engines,sources,profiles,workers",
            "headrace tail decisions --since 5m --no-follow",
            value=last.status,
            bound=SnapshotStatus.OPTIMAL,
        )
    elif last.status is SnapshotStatus.PROPORTIONAL and picture.setup.solver.policy == "lp":
        yield fault(
            "status",
            f"version {last.version} is PROPORTIONAL: {last.sentence}",
            "traffic is spread by capacity alone: no program could be solved, and no earlier weights stand",
            "headrace tail decisions --since 5m --no-follow",
            value=last.status,
            bound=SnapshotStatus.OPTIMAL,
        )


def _rungs(picture: Picture, ticks: tuple[SolveRecord, ...]) -> Iterator[Finding]:
    if picture.setup.solver.policy != "lp":
        return
    lower = [tick for tick in ticks if tick.rung not in FIRST and tick.status is SnapshotStatus.OPTIMAL]
    lower += [tick for tick in ticks if tick.rung in _LOW[:2] and tick not in lower]
    if len(lower) <= LOW_SHARE * len(ticks):
        return
    rungs = sorted({tick.rung for tick in lower})
    yield warning(
        "rung",
        f"{len(lower)} of the newest {len(ticks)} ticks needed a lower rung ({', '.join(rungs)}); at most "
        f"{100 * LOW_SHARE:.0f} %",
        "the linear solver fails on its first try, most often over inputs of very different size; the last: "
        + lower[-1].sentence[:200],
        "headrace doctor --only units",
        "headrace tail decisions --since 5m --no-follow --json | jq -c '[.version, .rung, .sentence]'",
        value=len(lower),
        bound=round(LOW_SHARE * len(ticks)),
    )


def _slow(picture: Picture, ticks: tuple[SolveRecord, ...]) -> Iterator[Finding]:
    took = sorted((t.build_us + t.solve_us + t.check_us + t.publish_us) / 1000 for t in ticks)
    median, period = took[len(took) // 2], picture.setup.solver.period_ms
    if median > period:
        yield warning(
            "solver.period_ms",
            f"half of the newest {len(ticks)} ticks took {duration(median)} or more; at most solver.period_ms, "
            f"{period}",
            "ticks are left out, so that weights follow later",
            f"headrace solver --set solver.period_ms={2 * round(median)}",
            value=round(median),
            bound=period,
        )
