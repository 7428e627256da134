"""The section `fields` of a mapping: where each field comes from, in which unit, and how it is put together.

ttft:     {required: true, names: [{name: "vllm:time_to_first_token_seconds", unit: s}]}
running:  {names: [{name: "x", match: {kind: [active, ""]}}], over_ranks: sum, over_instances: sum}
tbot:     {path: tpot_ms, unit: ms, tbot_kind: request_mean}                               documents
e2e:      {histogram: {count: e2e.count, sum: e2e.sum_s, bounds: e2e.bounds, counts: e2e.counts}, unit: s}
arrivals: {each: 1}                                                                        one per document
"""

from collections.abc import Mapping, Set
from typing import Any, Final, cast

from headrace.streams.core.mapping.model import Alias, FieldRule, HistogramPaths, Path
from headrace.streams.core.mapping.problems import Problems
from headrace.streams.core.mapping.reading import COUNTERS, DURATIONS, Field, Over, TbotKind
from headrace.streams.core.mapping.units import TIME_UNITS, Unit

MAX_ALIASES: Final = 64
_KEYS: Final = (
    "required",
    "names",
    "over_ranks",
    "over_instances",
    "path",
    "histogram",
    "each",
    "unit",
    "tbot_kind",
)
_ALIAS_KEYS: Final = ("name", "unit", "match", "tbot_kind")
_WITHOUT_WHICH_NOTHING: Final = (Field.TTFT, Field.TBOT)
"""Whoever writes where they are wants them: they are required unless the file says otherwise."""
_SOURCES: Final = ("names", "path", "histogram", "each")


def rules(
    written: object,
    own: Set[str],
    of_documents: bool,  # noqa: FBT001 - which of two forms
    problems: Problems,
) -> tuple[FieldRule, ...]:
    """Give the rules of all fields, in the fields' order; `own` are those that the file itself has, not its preset."""
    fields = problems.section("fields", written if written is not None else {}, [field.value for field in Field])
    if not fields and not problems.found:
        problems.add("fields", "is missing; name at least one, such as ttft")
    found: list[FieldRule] = []
    for field in Field:
        body = fields.get(field.value)
        if body is not None:
            section = problems.section(f"fields.{field}", body, _KEYS)
            rule = _rule(
                field, {"required": field in own and field in _WITHOUT_WHICH_NOTHING, **section}, of_documents, problems
            )
            if rule is not None:
                found.append(rule)
    return tuple(found)


def _rule(field: Field, body: Mapping[str, Any], of_documents: bool, problems: Problems) -> FieldRule | None:  # noqa: FBT001 - which of two forms
    at = f"fields.{field}"
    sources = [name for name in _SOURCES if name in body]
    if len(sources) != 1:
        problems.add(at, f"has {' and '.join(sources) or 'no source'}; expected one of {', '.join(_SOURCES)}")
        return None
    source = sources[0]
    if (source == "names") is of_documents:
        form = "path, histogram or each, since there is a section document" if of_documents else "names"
        problems.add(at, f"has {source}; expected {form}")
        return None
    required = body.get("required", False)
    if not isinstance(required, bool):
        problems.add(f"{at}.required", f"is {required!r:.40}; true or false")
    unit = _unit(at, field, body.get("unit"), problems)
    kind = problems.word(f"{at}.tbot_kind", body.get("tbot_kind", "unknown"), TbotKind)
    if source == "histogram" and field not in DURATIONS:
        problems.add(f"{at}.histogram", "is for durations only")
    if source == "each" and field not in COUNTERS:
        problems.add(f"{at}.each", "is for arrivals, rejected, retries, succeeded and failed only")
    return FieldRule(
        field=field,
        required=required is True,
        over_ranks=problems.word(f"{at}.over_ranks", body.get("over_ranks", _default_over(field)), Over) or Over.SUM,
        over_instances=problems.word(f"{at}.over_instances", body.get("over_instances", _default_over(field)), Over)
        or Over.SUM,
        aliases=_aliases(at, field, body["names"], problems) if source == "names" else (),
        path=problems.path(f"{at}.path", body["path"]) if source == "path" else None,
        histogram=_histogram(at, body["histogram"], problems) if source == "histogram" else None,
        each=problems.whole(f"{at}.each", body["each"], 1, 1_000_000) if source == "each" else None,
        unit=unit,
        tbot_kind=kind or TbotKind.UNKNOWN,
    )


def _default_over(field: Field) -> str:
    if field is Field.KV_USAGE:
        return "mean"
    return "min" if field is Field.HEALTH else "sum"


def _unit(at: str, field: Field, written: object, problems: Problems) -> Unit:
    allowed: tuple[Unit, ...] = (Unit.ONE,)
    if field in DURATIONS:
        allowed = TIME_UNITS
    elif field is Field.KV_USAGE:
        allowed = (Unit.RATIO, Unit.PERCENT)
    if written is None:
        return allowed[0]
    if isinstance(written, int | str) and str(written) in [unit.value for unit in allowed]:
        return Unit(str(written))
    problems.add(f"{at}.unit", f"is {written!r:.40}; {field} has {', '.join(allowed)}")
    return allowed[0]


def _aliases(at: str, field: Field, written: object, problems: Problems) -> tuple[Alias, ...]:
    if not isinstance(written, list) or not 0 < len(cast("list[object]", written)) <= MAX_ALIASES:
        problems.add(f"{at}.names", f"is {written!r:.60}; expected a list of 1 to {MAX_ALIASES} names")
        return ()
    found: list[Alias] = []
    for i, item in enumerate(cast("list[object]", written)):
        here = f"{at}.names[{i}]"
        body = problems.section(here, {"name": item} if isinstance(item, str) else item, _ALIAS_KEYS)
        name = body.get("name")
        if not isinstance(name, str) or not name:
            problems.add(f"{here}.name", f"is {name!r:.60}; expected the name of a series")
            continue
        kind = problems.word(f"{here}.tbot_kind", body.get("tbot_kind", "unknown"), TbotKind) or TbotKind.UNKNOWN
        unit = _unit(here, field, body.get("unit"), problems)
        match = _match(here, body.get("match", {}), problems)
        found += [Alias(spelled, unit, match, kind) for spelled in _spellings(name, field)]
    return tuple(found)


def _spellings(name: str, field: Field) -> tuple[str, ...]:
    """Give what exporters make of a series' name: those that know no colon in it, and those that cut its suffix off.

    The Collector's Prometheus receiver cuts with `trim_metric_suffixes`; what was cut, it says as the unit.
    """
    suffix = "_seconds" if field in DURATIONS else "_total" if field in COUNTERS else ""
    cut = (name, name.removesuffix(suffix)) if suffix and len(name) > len(suffix) else (name,)
    return tuple(dict.fromkeys(spelled for each in cut for spelled in (each, each.replace(":", "_"))))


def _match(at: str, written: object, problems: Problems) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(written, dict):
        problems.add(f"{at}.match", f"is {written!r:.60}; expected labels and values")
        return ()
    found: list[tuple[str, tuple[str, ...]]] = []
    for label, value in sorted(cast("dict[str, Any]", written).items()):
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        found.append((label, tuple(str(each) for each in values)))
    return tuple(found)


def _histogram(at: str, written: object, problems: Problems) -> HistogramPaths | None:
    section = problems.section(f"{at}.histogram", written, ("count", "sum", "bounds", "counts"))
    paths: dict[str, Path | None] = {name: problems.path(f"{at}.histogram.{name}", section[name]) for name in section}
    count, total = paths.get("count"), paths.get("sum")
    if count is None or total is None:
        problems.add(f"{at}.histogram", "needs count and sum: the mean is never made up from buckets")
        return None
    if ("bounds" in section) is not ("counts" in section):
        problems.add(f"{at}.histogram", "has bounds or counts; both or neither")
    return HistogramPaths(count, total, paths.get("bounds"), paths.get("counts"))
