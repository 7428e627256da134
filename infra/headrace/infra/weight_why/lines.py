"""A weight's report for people: the sentences, then the numbers they are made of."""

from collections.abc import Iterator
from datetime import UTC, datetime

from headrace.infra.weight_why.report import WeightReport
from headrace.schemas.weights import PPM
from headrace.solver.core.why.explain_words import dearer

WIDTH = 12
MAX_TOLD = 8
TERMS = (
    ("network_ms", "the round trip"),
    ("engine_ms", "the engine's own latency at its planned load"),
    ("congestion_ms", "what it adds to the others' waiting there"),
    ("scarcity_ms", "what its room is worth, where it is full"),
    ("move_ms", "for leaving a warm cache"),
)


def report_lines(report: WeightReport) -> tuple[str, ...]:
    """Give the lines."""
    return tuple(_lines(report))


def _lines(report: WeightReport) -> Iterator[str]:
    yield f"version {report.version}, epoch {report.epoch}, {report.status}, {_time(report.tick_ms)}{_again(report)}"
    yield from report.sentences
    yield from _terms(report)
    yield from _rows("not used", [_way(a.engine_ids, a.site, a.gap_ms) for a in report.alternatives])
    yield from _rows("binding", list(report.binding))
    yield from _rows("excluded", [f"{e.engine_id}: {e.reason}, {e.sentence}" for e in report.others_excluded])
    acted = [f"{p.engine_id}: {p.sentence} ({p.protection}, x{p.factor:.2f})" for p in report.protections]
    yield from _rows("protections", acted)
    steps = [
        f"{_clock(s.tick_ms)} version {s.version}: {_percent(s.before_ppm)} -> {_percent(s.after_ppm)}: {s.sentence}"
        for s in report.history
    ]
    yield from _rows("history", steps[-MAX_TOLD:])


def _terms(report: WeightReport) -> Iterator[str]:
    if report.terms_ms is None:
        return
    yield ""
    yield "one more request costs"
    for name, what in TERMS:
        yield f"  {getattr(report.terms_ms, name):10.1f} ms  {name.removesuffix('_ms')}: {what}"
    paid = "" if report.route_marginal_ms is None else f"; the route pays {report.route_marginal_ms:.1f} ms"
    yield f"= {report.terms_ms.marginal_ms:10.1f} ms{paid}"


def _rows(head: str, rows: list[str]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    for i, row in enumerate(rows[:MAX_TOLD]):
        yield f"{head if i == 0 else '':<{WIDTH}} {row}"
    if len(rows) > MAX_TOLD:
        yield f"{'':<{WIDTH}} and {len(rows) - MAX_TOLD} more (--json has all)"


def _again(report: WeightReport) -> str:
    if not report.computed_again:
        return "; computed again it comes out otherwise: its inputs or its settings are not all held any more"
    return "" if report.inputs_proved else "; its inputs are not proved to be those that it was made from"


def _way(engine_ids: tuple[str, ...], site: str, gap_ms: float) -> str:
    more = f" and {len(engine_ids) - 1} more" if len(engine_ids) > 1 else ""
    return f"{', '.join(engine_ids[:1])}{more} in {site}: {dearer(gap_ms)}"


def _percent(ppm: int) -> str:
    return f"{100 * ppm / PPM:.1f} %"


def _time(tick_ms: int) -> str:
    return datetime.fromtimestamp(tick_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


def _clock(tick_ms: int) -> str:
    return datetime.fromtimestamp(tick_ms / 1000, UTC).strftime("%H:%M:%S")
