"""Variants over a folder of history, run, compared and written down: what `replay run` and `replay compare` share.

    recorded  ┐
    variant   ├─ processes ─ scores ─ comparison ─ OUT: comparison.json, report.html, one folder a variant
    variant   ┘

Each variant begins from the settings that were recorded; where history does not tell them, from the configuration.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import orjson

from headrace.infra.configuration.config import Config
from headrace.infra.processes.stopping import stop_on_signals
from headrace.infra.replay_history.range import registry_of
from headrace.replay.core.history import HistoryError, Span
from headrace.replay.core.instants import instant
from headrace.replay.core.variant import RECORDED, Variant, parse_variants
from headrace.replay.report.differences import decider, largest_differences
from headrace.replay.report.document import Origin, document
from headrace.replay.report.text_table import report_lines
from headrace.replay.report.write import write_report
from headrace.replay.runs.common_span import common_span, span_anew
from headrace.replay.runs.variants import LOG, Job, Ran, folder_name, measured_in, recorded_settings, run_variants
from headrace.replay.score.comparison import compare
from headrace.replay.score.measured import MeasuredFleet
from headrace.replay.score.variant_score import VariantScore
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.made_folder import empty_folder
from headrace.schemas.topics import SHADOW
from headrace.solver.glop import Glop

INTERRUPTED = 130
ANEW = "recorded-anew"
"""The recorded policy over signals that are folded anew, beside what was recorded."""
SET = "recorded-set"
"""The recorded policy with what was set for all variants, beside what was recorded."""
NO_SETTINGS = (
    "history does not hold the shadow's settings: why it decided as it did cannot be explained, and is told only as "
    "far as its snapshots tell"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command was asked for.

    `given` are overrides for every variant, `solver.NAME=VALUE`; `mapped` is the history with the team's own telemetry
    translated anew, which the variants then fold. `force` writes over what OUT holds.
    """

    policies: tuple[str, ...]
    given: tuple[str, ...]
    out: Path
    processes: int
    from_signals: bool = False
    mapped: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it: the runs, what there is to say of them, and what was found in the range."""

    runs: tuple[Ran, ...]
    complete: bool
    lines: tuple[str, ...]
    notes: tuple[str, ...]


def compared(asked: Asked, folder: Path, config: Config) -> Result:
    """Run the variants and compare them with the recorded run.

    Raises:
        InvalidInputError: a variant is not right; every problem of all of them is told.
        HistoryError: the history holds nothing to run over, or OUT holds a run already.
    """
    history = HistoryFolder(folder)
    base = recorded_settings(history) or config.solver
    if not asked.policies:
        raise InvalidInputError("variants", ("give at least one --policy, such as lp or proportional:k=0.1",))
    variants = parse_variants(asked.policies, asked.given, base)
    _see_names(asked.policies)
    _see_out(asked, [RECORDED, ANEW, SET, *(variant.name for variant in variants)])
    registry = registry_of(config)
    anew = asked.from_signals or asked.mapped is not None
    span = (
        span_anew(history, base.period_ms, [variant.settings.period_ms for variant in variants])
        if anew and history.ticks
        else None
    )
    measured = measured_in(history, registry, span)
    streams = config.streams if anew or not history.ticks else None
    jobs = (
        [
            Job(
                folder,
                RECORDED,
                None,
                base,
                asked.out,
                measured,
                registry=registry,
                dataplane=config.dataplane,
                span=span,
            )
        ]
        if history.ticks
        else []
    )
    if jobs:
        variants = tuple(_beside_recorded(v, anew=anew) for v in variants)
    jobs += [
        Job(
            asked.mapped or folder,
            v.name,
            v,
            base,
            asked.out,
            measured,
            streams=streams,
            registry=registry,
            dataplane=config.dataplane,
            span=span,
        )
        for v in variants
        if v.name != RECORDED or not jobs
    ]
    return _run(asked, history, jobs, measured, span)


def compared_with_shadow(asked: Asked, folder: Path, config: Config) -> Result:
    """Compare the recorded run with the shadow that was recorded beside it, over the time that both have.

    Raises:
        HistoryError: no shadow was recorded in the range, or at no time that the live solver ticked too.
    """
    history = HistoryFolder(folder)
    if not history.places(SHADOW):
        raise HistoryError("no shadow was recorded in this range: `headrace solver --shadow POLICY` writes one")
    span, notes = common_span(history)
    base = recorded_settings(history, span=span) or config.solver
    own = recorded_settings(history, SHADOW, span)
    _see_out(asked, [RECORDED, "shadow"])
    registry = registry_of(config)
    measured = measured_in(history, registry, span)
    live = Job(
        folder, RECORDED, None, base, asked.out, measured, registry=registry, dataplane=config.dataplane, span=span
    )
    shadow = replace(live, name="shadow", known=own or base, role=SHADOW, guessed=own is None)
    notes = notes if own is not None else (*notes, NO_SETTINGS)
    return _run(asked, history, [live, shadow], measured, span, notes)


def tell(result: Result, *, as_json: bool) -> None:
    """Print a result, and on standard error what was found; end with INTERRUPTED where it is not whole."""
    for note in result.notes:
        click.echo(note, err=True)
    if as_json:
        click.echo(orjson.dumps(plain_runs(result), option=orjson.OPT_INDENT_2))
    else:
        for line in result.lines:
            click.echo(line)
    if not result.complete:
        sys.exit(INTERRUPTED)


def plain_runs(result: Result) -> dict[str, Any]:
    """Give a result as JSON's types, without the numbers of the comparison: those are in comparison.json."""
    return {
        "complete": result.complete,
        "variants": [
            {
                "name": ran.name,
                "configuration": ran.configuration,
                "ticks": ran.ticks,
                "same": ran.same,
                "digest": ran.digest,
                "complete": ran.complete,
            }
            for ran in result.runs
        ],
    }


def _beside_recorded(variant: Variant, *, anew: bool) -> Variant:
    """Give the recorded policy a name of its own where it is not what was recorded, which stays as it is."""
    if variant.name != RECORDED:
        return variant
    if anew:
        return replace(variant, name=ANEW)
    return replace(variant, name=SET) if variant.overrides else variant


def _see_names(policies: Sequence[str]) -> None:
    named = [text for text in policies if text.startswith(f"{RECORDED}=")]
    if named:
        told = f"is called {RECORDED!r}, as the recorded run is; give it another name"
        raise InvalidInputError("variants", tuple(f"{text} {told}" for text in named))


def _see_out(asked: Asked, names: Sequence[str]) -> None:
    """Take the folder; a log of the same name, which `--force` lets go, is no log of this run."""
    empty_folder(asked.out, "--out", force=asked.force)
    for name in names:
        (asked.out / folder_name(name) / LOG).unlink(missing_ok=True)


def _run(
    asked: Asked,
    history: HistoryFolder,
    jobs: Sequence[Job],
    measured: MeasuredFleet,
    span: Span | None = None,
    notes: tuple[str, ...] = (),
) -> Result:
    stop = stop_on_signals()
    with click.progressbar(length=max(1, history.ticks * len(jobs)), label="playing", file=sys.stderr) as bar:
        runs = run_variants(jobs, asked.processes, bar.update, stop)
    played = [ran for ran in runs if ran.score is not None]
    if not played:
        raise HistoryError(f"nothing could be played: the range holds no tick that is whole{_found(runs)}")
    idle = [ran.name for ran in runs if ran.score is None and ran.complete]
    if idle:
        # A table without them would look as if they had not been asked for.
        raise HistoryError(f"{', '.join(idle)} could decide nothing at any tick of the range{_found(runs)}")
    comparison = compare(
        played[0].name,
        _alike([ran.score for ran in played if ran.score is not None]),
        measured=measured,
        configurations={ran.name: ran.configuration for ran in played},
    )
    estimates = {ran.name: ran.off_policy for ran in played}
    variants = tuple(replace(each, off_policy=estimates[each.score.name]) for each in comparison.variants)
    comparison = replace(comparison, variants=variants)
    complete = len(runs) == len(jobs) and all(ran.complete for ran in runs)
    told_by = [job for job in jobs if not job.guessed]
    rules = {job.name: job.known if job.variant is None else job.variant.settings for job in told_by}
    scores = [each.score for each in comparison.variants]
    deciders = {name: decider(settings, Glop()) for name, settings in rules.items()}
    differences = largest_differences(scores[0], scores[1:], deciders)
    origin = _origin(history, asked, runs, span or history.span, complete=complete)
    origin = replace(origin, notes=(*notes, *origin.notes))
    told = document(comparison, origin, differences)
    page = write_report(told, asked.out)
    lines = (*_ticks(runs), "", *report_lines(told, page))
    return Result(tuple(runs), complete, lines, tuple(origin.notes))


def _alike(scores: Sequence[VariantScore]) -> Sequence[VariantScore]:
    """Give scores that count lost caches in the same way: by sessions where all of them can."""
    if any(score.sessions is None for score in scores):
        return [replace(score, sessions=None) for score in scores]
    return scores


def _found(runs: Sequence[Ran]) -> str:
    """Say what may be the reason that a run came to nothing."""
    found = dict.fromkeys(finding for ran in runs for finding in ran.findings)
    return "".join(f"\n  - {finding}" for finding in found)


def _origin(history: HistoryFolder, asked: Asked, runs: Sequence[Ran], span: Span, *, complete: bool) -> Origin:
    of = f"{instant(span.from_ms)} to {instant(span.to_ms)}"
    source = "signals, folded anew" if asked.from_signals else "recorded ticks, at their recorded offsets and times"
    findings = history.findings
    if asked.mapped is not None:
        source = "your telemetry, translated by another mapping and folded anew"
        findings = (*findings, *HistoryFolder(asked.mapped).findings)
    findings = (*findings, *(finding for ran in runs for finding in ran.findings))
    notes = tuple(dict.fromkeys(str(finding) for finding in findings))
    return Origin(f"Replay of {of}", source, closed_loop=False, notes=notes, complete=complete)


def _ticks(runs: Sequence[Ran]) -> list[str]:
    """Say how many ticks each variant played, and how many came to the recorded weights."""
    lines: list[str] = []
    for ran in runs:
        whole = "" if ran.complete else ", stopped before the end"
        same = f", {ran.same} with the recorded weights" if ran.same else ""
        lines.append(f"{ran.name}: {ran.ticks} ticks{same}{whole}")
    return lines
