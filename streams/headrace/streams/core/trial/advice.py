"""What to change so that records fit a mapping: `advise(seen)`, a sentence for each problem, and whether it fails.

What fails: records that the bridge would refuse or make nothing of, a required field that never matches, and a mean
that cannot be, which is a wrong unit. The rest is worth a look, and fits.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.schemas.signals import Vantage
from headrace.streams.core.mapping.model import FieldRule, TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.mapping.reading import DEMANDED, DURATIONS, Field
from headrace.streams.core.trial.document_paths import written
from headrace.streams.core.trial.field_trial import FieldTrial
from headrace.streams.core.trial.sniff import fields_served, preset_of_names

PLAUSIBLE_S: Final[Mapping[Field, tuple[float, float]]] = {
    Field.TTFT: (0.001, 120.0),
    Field.TBOT: (0.0002, 5.0),
    Field.E2E: (0.002, 3_600.0),
    Field.QUEUE: (0.0, 600.0),
}
"""Means beyond are most often a wrong unit."""
_SHOWN: Final = 4
_SAMPLES: Final = ("_bucket", "_sum", "_count")


class Advice(NamedTuple):
    """What to change; `fails` where the mapping does not fit for it."""

    sentence: str
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What a trial saw: counts of messages, points, documents and signals; names and paths that the records have."""

    mapping: TelemetryMapping
    carrier: str
    expired_after_ms: int | None
    counts: Mapping[str, int]
    fields: tuple[FieldTrial, ...]
    outcomes: Mapping[str, int]
    rejects: Mapping[str, int]
    unmatched: Mapping[str, int]
    paths: Mapping[str, int]
    ahead_ms: Sequence[int]


def advise(seen: Seen) -> tuple[Advice, ...]:
    """Give what to change, what fails first where one follows from another."""
    counts = seen.counts
    if not counts["messages"]:
        return (Advice("there are no records to try it on"),)
    if not counts["points"] + counts["documents"] + counts["signals"]:
        other = "try another carrier, or `headrace map init`, which looks for one"
        return (Advice(f"not one message is {seen.carrier}: {other}"),)
    return (*_of_fields(seen), *_of_the_source(seen), *_of_series(seen))


def unknown_engines(engines: Iterable[str], fleet: Iterable[str]) -> tuple[str, ...]:
    """Say which engines a fleet does not have: what is told of them is refused. An empty fleet is yet to be written."""
    known = sorted(set(fleet))
    unknown = sorted(set(engines) - set(known))
    if not known or not unknown:
        return ()
    be, it = ("is", "it") if len(unknown) == 1 else ("are", "them")
    said = f"{_some(unknown)} {be} not in the fleet (which has {_some(known)}), and what is told of {it} is refused"
    return (f"{said} (UNKNOWN_ENGINE): name {it} the same, by engine_id in the fleet file or by values.engine here",)


def _of_fields(seen: Seen) -> Iterator[Advice]:
    rules = {rule.field: rule for rule in seen.mapping.rules}
    missing = [each for each in seen.fields if not each.readings and not seen.counts["signals"]]
    if any(each.required for each in missing):
        yield from _other_preset(seen)
    for each in seen.fields:
        rule = rules[each.field]
        if each in missing and (each.required or rule.path is not None or rule.histogram is not None):
            yield Advice(_never(seen, rule), each.required)
        bounds = PLAUSIBLE_S.get(each.field)
        if bounds is not None and each.mean is not None and not bounds[0] <= each.mean <= bounds[1]:
            yield Advice(
                f"{each.field}: its mean is {each.mean:g} s; {bounds[0]:g} to {bounds[1]:g} s is plausible: is its "
                f"unit right? (fields.{each.field}, unit)",
                fails=True,
            )
        if each.field in DURATIONS and each.readings and not each.differences:
            yield Advice(
                f"{each.field}: {each.readings} readings and not one difference: cumulative series need two scrapes of "
                "the same series; try more records"
            )


def _of_the_source(seen: Seen) -> Iterator[Advice]:
    if seen.ahead_ms:
        yield Advice(
            f"{len(seen.ahead_ms)} readings are dated up to {_span(max(seen.ahead_ms))} ahead of this clock, and the "
            "bridge refuses them (TIME_IN_FUTURE): set the clock of whoever dates them, or its time zone",
            fails=True,
        )
    vantage = seen.mapping.vantage
    if vantage is not Vantage.ENGINE and any(each.readings and each.field not in DEMANDED for each in seen.fields):
        yield Advice(
            f"vantage is {vantage}: what is seen from there includes the network, is kept apart, and makes no engine's "
            "state valid; where it was measured at the engine, write vantage: ENGINE"
        )
    period_s = max((each.period_s or 0.0 for each in seen.fields), default=0.0)
    if seen.expired_after_ms is not None and 2000 * period_s > seen.expired_after_ms:
        yield Advice(
            f"the source speaks every {period_s:g} s, and solver.expired_after_ms is {seen.expired_after_ms}: one "
            f"lost scrape excludes an engine; set it to {int(3000 * period_s)} or more"
        )


def _of_series(seen: Seen) -> Iterator[Advice]:
    folded, late = seen.outcomes.get("folded", 0), seen.outcomes.get("out_of_order", 0)
    if folded:
        yield Advice(f"{folded} readings are of more series than limits.max_series: is a label made from user input?")
    if late:
        yield Advice(
            f"{late} readings are older than their series: they came out of order; the streams put right what is "
            "within streams.grace_ms"
        )


def _other_preset(seen: Seen) -> Iterator[Advice]:
    """Name the preset that knows more of these names than the mapping does."""
    names = {name for each in seen.fields for name in each.names}
    for name in seen.unmatched:
        names |= {name, *(name.removesuffix(suffix) for suffix in _SAMPLES)}
    preset = preset_of_names(names)
    if preset is not None and preset != seen.mapping.name:
        served = sum(bool(each.readings) for each in seen.fields)
        from_preset = fields_served(load_preset(preset), names)
        if from_preset > served:
            yield Advice(f"these are {preset}'s names, {from_preset} of its fields: write preset: {preset}")


def _never(seen: Seen, rule: FieldRule) -> str:
    name = rule.field
    paths = [path.text for path in (rule.path, rule.histogram and rule.histogram.count) if path]
    if paths:
        known = {written(each): each for each in seen.paths}
        near = difflib.get_close_matches(paths[0], list(known), n=1, cutoff=0.6)
        if paths[0] in known:
            return f"{name}: {paths[0]} is there, and no value of it can be used; see the rejects"
        hint = f"nearest {near[0]}" if near else f"there are {_some(sorted(known))}"
        return f"{name}: no record has {paths[0]}; {hint}; see fields.{name}"
    wanted = [alias.name for alias in rule.aliases]
    there = [each for each in wanted if any(detail.startswith(each[:80]) for detail in seen.rejects)]
    if there:
        return f"{name}: {there[0]} is there, and every point of it is rejected; see the rejects"
    near = [n for each in wanted for n in difflib.get_close_matches(each, list(seen.unmatched), n=2, cutoff=0.6)]
    hint = f" nearest names here: {', '.join(dict.fromkeys(near))};" if near else ""
    return f"{name}: none of {_some(wanted)} is in these records;{hint} write fields.{name}.names"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _span(duration_ms: int) -> str:
    return f"{duration_ms / 60_000:.0f} min" if duration_ms >= 120_000 else f"{duration_ms / 1000:.0f} s"
