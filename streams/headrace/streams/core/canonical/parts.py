"""Samples of a Prometheus histogram -> parts of it, each a point of the histogram's own name.

A carrier that writes one sample a message spreads a histogram over messages, and perhaps partitions. Nobody waits for
the rest here: each sample is a point of its own, and the fold of its key puts them together (`core/held.assembled`).
"""

from collections.abc import Iterable, Mapping, Sequence

from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.series import SeriesPart
from headrace.streams.core.decode.contract import Explicit, Kind, Point, Refusal, Temporality
from headrace.streams.core.decode.values import count, number

_SUFFIXES = {"_bucket": SeriesPart.BUCKET, "_sum": SeriesPart.SUM, "_count": SeriesPart.COUNT}


def part_names(families: Iterable[str]) -> Mapping[str, tuple[str, SeriesPart]]:
    """Give of each sample's name the histogram that it belongs to, and which part of it it is."""
    return {family + suffix: (family, part) for family in families for suffix, part in _SUFFIXES.items()}


def as_parts(
    points: Sequence[Point], names: Mapping[str, tuple[str, SeriesPart]], rejects: list[Rejected]
) -> tuple[Sequence[Point], Mapping[int, SeriesPart]]:
    """Give the points with samples made into parts, and which place holds which part; the rest are as they were.

    A sample without a value says nothing, and is left out.
    """
    if not any(point.name in names and point.histogram is None for point in points):
        return points, {}
    found: list[Point] = []
    parts: dict[int, SeriesPart] = {}
    for point in points:
        family, part = names.get(point.name, ("", SeriesPart.WHOLE))
        if not family or point.histogram is not None:
            found.append(point._replace(place=len(found)))
            continue
        if point.value is None:
            continue
        try:
            made = _part(point, family, part, len(found))
        except Refusal as refusal:
            rejects.append(Rejected(refusal.rejected.reason, f"{point.name[:80]}: {refusal.rejected.detail}"))
            continue
        parts[len(found)] = part
        found.append(made)
    return found, parts


def _part(point: Point, family: str, part: SeriesPart, place: int) -> Point:
    labels, value = point.labels, point.value or 0.0
    if part is SeriesPart.BUCKET:
        spelled = next((text for name, text in labels if name == "le"), None)
        if spelled is None:
            raise Refusal(RejectReason.INCONSISTENT, "a bucket without the label le")
        bound = number(spelled, "le")
        if not bound > float("-inf"):
            raise Refusal(RejectReason.INCONSISTENT, f"le is {spelled!r:.40}; expected a bound")
        labels = tuple(pair for pair in labels if pair[0] != "le")
        histogram = Explicit((bound,), (), count(value, "a bucket"), None)
    elif part is SeriesPart.COUNT:
        histogram = Explicit((), (), count(value, "the count"), None)
    else:
        histogram = Explicit((), (), 0, value)
    return Point(
        family,
        labels,
        Kind.HISTOGRAM,
        Temporality.CUMULATIVE,
        point.time_ms,
        point.start_ms,
        None,
        histogram,
        "",
        place,
    )
