"""What is changed, as it is typed, and what it makes of a problem. Pure.

    --capacity E=0        E serves so many RPS, whatever it is now: its exclusion, health and penalties do not count
    --add-replicas E=2    E has so many ready replicas more (or fewer: E=-1), each as the ones it has
    --drain E             E is out
    --back E              E is not out any more, healthy and warm, with the replicas and the capacity last known of it
    --demand B*1.3        B asks for so much more; B=150 or B+20 in RPS; B is a cluster, or a route: B|model|class
    --pin B=E=20%         B sends E exactly so much, in place of another pin of the two; 5%..30% gives it room
    --unfreeze            the freeze has ended

What was measured of an engine belongs to what it was: it does not count for one that is changed.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.infra.configuration.tree import nearest
from headrace.infra.overrides.share import share_ppm
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.weights import PPM, EngineMemory, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Pin, Problem, Row

NOTHING = "nothing is changed; give --capacity, --add-replicas, --drain, --back, --demand, --pin or --unfreeze"
MAX_RPS = 1e9
MAX_REPLICAS = 1_000_000
_DEMAND = re.compile(r"([^*=+]+)([*=+])(.+)")


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `change_engine` and `change_row` say what it makes of those of that name; `pin` is added.

    `out` is whether the engine is to be out, None where that is not the question.
    """

    sentence: str
    name: str
    change_engine: Callable[[Engine], Engine] | None = None
    change_row: Callable[[Row], Row] | None = None
    pin: Pin | None = None
    forget: bool = False
    out: bool | None = None
    unfreeze: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed, by option."""

    capacity: Sequence[str] = ()
    replicas: Sequence[str] = ()
    drain: Sequence[str] = ()
    back: Sequence[str] = ()
    demand: Sequence[str] = ()
    pins: Sequence[str] = ()
    unfreeze: bool = False


def parse_edits(asked: Asked, problem: Problem) -> tuple[Edit, ...]:
    """Read what was typed.

    Raises:
        InvalidInputError: with everything that is no change, or of no engine, cluster or route of the problem.
    """
    problems: list[str] = []
    engines = [engine.engine_id for engine in problem.engines]
    places = sorted({row.route.cluster for row in problem.rows} | {str(row.route) for row in problem.rows})
    edits = [
        *_each("--capacity", asked.capacity, _capacity, engines, problems),
        *_each("--add-replicas", asked.replicas, _more_replicas, engines, problems),
        *_each("--drain", asked.drain, _drained, engines, problems),
        *_each("--demand", asked.demand, _demand, places, problems),
        *_each("--pin", asked.pins, _pin, engines, problems),
        *_each("--back", asked.back, _back, engines, problems),
        *([Edit("the freeze has ended", "", unfreeze=True)] if asked.unfreeze else []),
    ]
    clusters = sorted({row.route.cluster for row in problem.rows})
    problems += [
        f"--pin is of {edit.pin.cluster!r}, which is not there, {nearest(edit.pin.cluster, clusters)}"
        for edit in edits
        if edit.pin is not None and edit.pin.cluster not in clusters
    ]
    if not problems and not edits:
        problems.append(NOTHING)
    if problems:
        raise InvalidInputError("what-if", tuple(problems))
    return tuple(edits)


def edited(problem: Problem, edits: Sequence[Edit]) -> Problem:
    """Give the problem with the changes made, in their order."""
    for edit in edits:
        engine, row = edit.change_engine, edit.change_row
        if engine is not None:
            engines = tuple(engine(e) if e.engine_id == edit.name else e for e in problem.engines)
            problem = replace(problem, engines=engines)
        if row is not None:
            rows = tuple(row(r) if edit.name in (r.route.cluster, str(r.route)) else r for r in problem.rows)
            problem = replace(problem, rows=rows)
        if edit.pin is not None:
            problem = replace(problem, pins=_with(edit.pin, problem.pins))
        if edit.unfreeze:
            problem = replace(problem, frozen="")
    return problem


def notes_on(problem: Problem, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Say which changes change nothing, since it is so already."""
    engines = {engine.engine_id: engine for engine in problem.engines}
    notes: list[str] = []
    for edit in edits:
        if edit.out is None:
            continue
        found = engines[edit.name].exclusion
        if edit.out and found is not None:
            already = f"{edit.name} is excluded already ({found.reason}, {found.sentence}): to drain it changes nothing"
            notes.append(f"{already}; --back {edit.name} says what it would take if it came back")
        elif not edit.out and found is None:
            notes.append(f"{edit.name} is not out")
    return tuple(notes)


def remembered(previous: Snapshot, edits: Sequence[Edit]) -> Snapshot:
    """Give the snapshot before, without what it remembers of engines whose capacity is now said; their trim stays."""
    names = {edit.name for edit in edits if edit.forget}
    kept = tuple(
        EngineMemory(m.engine_id, trim_ppm=m.trim_ppm, trim_step=m.trim_step) if m.engine_id in names else m
        for m in previous.commit.remembered
    )
    return Snapshot(replace(previous.commit, remembered=kept), previous.routes)


def _each(
    option: str,
    given: Sequence[str],
    parse: Callable[[str], Edit | str],
    known: Sequence[str],
    problems: list[str],
) -> Iterator[Edit]:
    for text in given:
        edit = parse(text)
        if isinstance(edit, str):
            problems.append(f"{option} is {text!r}; {edit}")
        elif edit.name not in known:
            problems.append(f"{option} is {text!r}; {edit.name!r} is not there, {nearest(edit.name, known)}")
        else:
            yield edit


def _capacity(text: str) -> Edit | str:
    name, _, value = text.partition("=")
    rps = _number(value)
    if rps is None or not 0.0 <= rps <= MAX_RPS:
        return "expected ENGINE=RPS, such as engine-a=0"

    def change(engine: Engine) -> Engine:
        ready = max(1, engine.ready_replicas)
        return replace(
            engine,
            ready_replicas=ready,
            capacity_rps_per_replica=rps / ready,
            factor=1.0,
            factor_sentence="",
            exclusion=None,
            measured=None,
            outcomes=None,
        )

    return Edit(f"{name} serves {rps:g} RPS", name, change_engine=change, forget=True)


def _more_replicas(text: str) -> Edit | str:
    name, _, value = text.partition("=")
    number = _number(value)
    if number is None or not number.is_integer() or not 0 < abs(number) <= MAX_REPLICAS:
        return "expected ENGINE=NUMBER, such as engine-a=2 or engine-a=-1"

    def change(engine: Engine) -> Engine:
        ready = max(0, engine.ready_replicas + int(number))
        out = engine.exclusion
        if out is not None and out.reason is Reason.NO_READY_REPLICA:
            out = None
        if ready == 0:
            out = out or Exclusion(Reason.NO_READY_REPLICA, "0 replicas are ready in this what-if")
        return replace(engine, ready_replicas=ready, exclusion=out, measured=None)

    word = "more" if number > 0 else "fewer"
    noun = "replica" if abs(number) == 1 else "replicas"
    return Edit(f"{name} has {abs(number):g} {noun} {word}", name, change_engine=change)


def _drained(text: str) -> Edit | str:
    out = Exclusion(Reason.DRAINED, "drained in this what-if")
    return Edit(f"{text} is drained", text, change_engine=lambda engine: replace(engine, exclusion=out), out=True)


def _back(text: str) -> Edit | str:
    def change(engine: Engine) -> Engine:
        if engine.exclusion is None:
            return engine
        ready = max(1, engine.ready_replicas)
        return replace(
            engine, ready_replicas=ready, factor=1.0, factor_sentence="", exclusion=None, measured=None, outcomes=None
        )

    return Edit(f"{text} is back, and warm", text, change_engine=change, forget=True, out=False)


def pinned(pin: Pin, words: str) -> Edit:
    """Give the change that a pin makes; `words` say to what."""
    return Edit(f"{pin.engine_id} gets {words} of {pin.cluster}", pin.engine_id, pin=pin)


def _pin(text: str) -> Edit | str:
    cluster, _, rest = text.partition("=")
    engine, _, value = rest.partition("=")
    low, dots, high = value.partition("..")
    least, most = share_ppm(low), share_ppm(high if dots else low)
    if least is None or most is None or least > most:
        return "expected CLUSTER=ENGINE=SHARE, such as tokyo=engine-a=20% or tokyo=engine-a=5%..30%"
    pin = Pin(cluster, engine, least / PPM, most / PPM, "pinned in this what-if")
    return pinned(pin, f"exactly {low}" if least == most else f"{low} to {high}")


def _with(pin: Pin, pins: Sequence[Pin]) -> tuple[Pin, ...]:
    others = (p for p in pins if (p.engine_id, p.cluster) != (pin.engine_id, pin.cluster))
    return tuple(sorted((*others, pin), key=lambda p: (p.engine_id, p.cluster)))


def _demand(text: str) -> Edit | str:
    found = _DEMAND.fullmatch(text)
    value = None if found is None else _number(found[3])
    if found is None or value is None or not 0.0 <= value <= MAX_RPS:
        return "expected CLUSTER*FACTOR, CLUSTER=RPS or CLUSTER+RPS, such as tokyo*1.3"
    name, how = found[1], found[2]

    def change(row: Row) -> Row:
        rps = {"*": row.demand_rps * value, "=": value, "+": row.demand_rps + value}[how]
        return replace(row, demand_rps=rps)

    words = {
        "*": "as much as now" if value == 1.0 else f"{value:g} times as much",
        "=": f"{value:g} RPS",
        "+": f"{value:g} RPS more",
    }
    return Edit(f"{name} asks for {words[how]}", name, change_row=change)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
