"""`headrace map`: try a mapping on records, and have one proposed; from a file, or from a live topic."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.command_line.nearest_command import NearestGroup
from headrace.infra.configuration.config import Config, config_options
from headrace.schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.schemas.raw import RawRecord
    from headrace.streams.core.mapping.model import TelemetryMapping
    from headrace.streams.core.trial.field_trial import FieldTrial
    from headrace.streams.core.trial.trial import Trial

_RECORDS = click.option(
    "--records",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of records: *.jsonl, one record a line; any other file is one message.",
)
_TOPIC = click.option("--topic", help="Live topic; its newest records are read.")
_LIMIT = click.option("--limit", type=click.IntRange(1, 1_000_000), default=2_000, show_default=True, help="Records.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SHOWN = 12


def _source(function: "Callable[..., None]") -> "Callable[..., None]":
    for option in (_JSON, _LIMIT, _TOPIC, _RECORDS):
        function = option(function)
    return config_options(function)


@click.group(cls=NearestGroup)
def command() -> None:
    """Fit headrace to the telemetry that is already on your Kafka."""


@command.command()
@_source
@click.option("--mapping", "mapping_path", type=click.Path(path_type=Path, dir_okay=False), help="Mapping file (YAML).")
@click.option("--preset", help="A preset as it ships, in a mapping file's place; `headrace map presets` lists them.")
@click.option("--carrier", help="How the records are written; default: what the mapping says.")
def test(
    *,
    config: Config,
    path: Path | None,
    topic: str | None,
    limit: int,
    as_json: bool,
    mapping_path: Path | None,
    preset: str | None,
    carrier: str | None,
) -> None:
    """Say what a mapping makes of records, and what to change; exit status 1 where it does not fit.

    It does not where a required field never matches (ttft and tbot are required where a file writes them, unless it
    says required: false), where a mean cannot be (a wrong unit), and where records are dated ahead of this clock.
    Other lines with ! are worth a look. With --topic, engines are held against the fleet on the same Kafka.

    Example: headrace map test --records telemetry.kafka.jsonl --preset vllm_v1 --carrier otlp_json
    """
    from dataclasses import replace

    from headrace.infra.configuration.entry_point import load_rewrite
    from headrace.solver.clocks import wall_clock_ms
    from headrace.streams.core.trial.advice import unknown_engines
    from headrace.streams.core.trial.trial import try_mapping

    mapping = _mapping(mapping_path, preset)
    chosen = carrier or mapping.carrier
    if chosen is None:
        raise click.UsageError("--carrier is missing, and the mapping names none")
    rewrite = None if mapping.python is None else load_rewrite(mapping.python)
    records = _records(config, path, topic, limit)
    trial = try_mapping(records, mapping, chosen, rewrite, config.solver.expired_after_ms, wall_clock_ms())
    if topic is not None:
        strangers = unknown_engines(trial.engines, _fleet(config))
        trial = replace(trial, problems=(*trial.problems, *strangers))
    if as_json:
        click.echo(orjson.dumps(trial, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        _print_trial(trial)
    if trial.failed:
        sys.exit(1)


@command.command()
@_source
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the file here; default: print it.")
@click.option("--force", is_flag=True, help="Overwrite --out where it is there already.")
def init(
    *,
    config: Config,
    path: Path | None,
    topic: str | None,
    limit: int,
    as_json: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Look at records and propose a mapping file; exit status 1 where no carrier reads them, or --out is there.

    Example: headrace map init --records telemetry.kafka.jsonl --out mapping.yaml
    """
    from headrace.streams.core.trial.proposal import propose
    from headrace.streams.core.trial.sniff import refusals

    if out is not None and out.exists() and not force:
        raise InvalidInputError("map init", (f"--out {out} is there already; --force overwrites it",))
    records = _records(config, path, topic, limit)
    proposal = propose(records)
    if proposal is None:
        click.echo(f"headrace: no carrier reads any of the {len(records)} records", err=True)
        for carrier, detail in (refusals(records[0]) if records else {}).items():
            click.echo(f"  {carrier:<13} {detail}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(orjson.dumps(proposal).decode())
    elif out is None:
        click.echo(proposal.text, nl=False)
    if out is not None:
        out.write_text(proposal.text, "utf-8")
    if not as_json:
        known = f"preset {proposal.preset}" if proposal.preset else "no preset"
        found = f"{proposal.usable} of {proposal.messages} records are {proposal.carrier}; {known}"
        source = ("--topic", topic) if topic is not None else ("--records", str(path))
        tried = shlex.join(("headrace", "map", "test", *source, "--mapping", "FILE" if out is None else str(out)))
        click.echo(f"{found}. Try it: {tried}", err=True)


@command.command()
@_JSON
@click.option("--show", metavar="NAME", help="Print this preset's own YAML, to copy from.")
def presets(*, as_json: bool, show: str | None) -> None:
    """List the presets that ship, or print one."""
    from headrace.streams.core.mapping.parse import load_preset, preset_names, preset_text

    if show is not None:
        click.echo(preset_text(show), nl=False)
        return
    rows = [
        {"name": name, "vantage": mapping.vantage, "fields": [rule.field for rule in mapping.rules]}
        for name in preset_names()
        for mapping in [load_preset(name)]
    ]
    if as_json:
        click.echo(orjson.dumps(rows).decode())
        return
    for row in rows:
        click.echo(f"{row['name']:<12} {row['vantage']:<8} {', '.join(row['fields'])}")


def _records(config: Config, path: Path | None, topic: str | None, limit: int) -> "tuple[RawRecord, ...]":
    if (path is None) is (topic is None):
        raise click.UsageError("give one of --records and --topic")
    if path is not None:
        from headrace.infra.record_file import read_records

        return read_records(path, limit)
    from headrace.infra.topic_readers.sample import sample_topic

    # A series without a key is spread over partitions: in the order of time, as the streams put it.
    found = sample_topic(config.kafka, topic or "", limit, timeout_s=30.0)
    return tuple(sorted(found, key=lambda record: (record.timestamp_ms, record.partition, record.offset)))


def _fleet(config: Config) -> tuple[str, ...]:
    """Give the engines of the fleet; none where it cannot be read: a mapping may be tried before there is any."""
    from headrace.infra.fleet_records.topics import read_fleet
    from headrace.schemas.errors import HeadraceError

    try:
        return tuple(engine.engine_id for engine in read_fleet(config.kafka, config.topics).engines)
    except HeadraceError:
        return ()


def _mapping(mapping_path: Path | None, preset: str | None) -> "TelemetryMapping":
    from headrace.infra.configuration.bridge_sources import read_mapping
    from headrace.streams.core.mapping.parse import load_preset

    if (mapping_path is None) is (preset is None):
        raise click.UsageError("give one of --mapping and --preset")
    if mapping_path is None:
        return load_preset(preset or "")
    return read_mapping(mapping_path)


def _print_trial(trial: "Trial") -> None:
    click.echo(f"mapping {trial.mapping} ({trial.mapping_hash}), carrier {trial.carrier}")
    click.echo(
        f"{trial.messages} messages: {trial.points} points, {trial.documents} documents, {trial.signals} signals"
    )
    engines = [f"{engine} ({' '.join(models)})" for engine, models in trial.engines.items()]
    click.echo(f"engines: {_listed(engines)}")
    click.echo("")
    click.echo(f"{'field':<17} {'readings':>8} {'diffs':>6} {'resets':>6} {'missing':>7} {'mean s':>9} {'period s':>8}")
    for each in trial.fields:
        click.echo(_field_line(each))
    _print_counts("outcomes", trial.outcomes)
    _print_counts("rejects", trial.rejects)
    _print_counts("names that no field asks for", trial.unmatched)
    if trial.events:
        click.echo("\nfirst differences:")
        for event in trial.events:
            mean = "" if event.mean_s is None else f", mean {event.mean_s:.4g} s"
            size = f"{event.value:g}" if event.observations is None else f"{event.observations} requests"
            reset = f"  RESET: {event.reset}" if event.reset else ""
            span_s = (event.to_ms - event.from_ms) / 1000
            click.echo(f"  {event.engine} {event.model} {event.field}: {size} in {span_s:g} s{mean}{reset}")
    click.echo("")
    for problem in trial.problems:
        click.echo(f"! {problem}")
    fits = "fits, but see the ! lines above" if trial.problems else "fits"
    click.echo("does not fit: see above" if trial.failed else fits)


def _field_line(each: "FieldTrial") -> str:
    name = f"{each.field}{' *' if each.required else ''}"
    mean = "-" if each.mean is None else f"{each.mean:.4g}"
    period = "-" if each.period_s is None else f"{each.period_s:g}"
    counts = f"{each.readings:>8} {each.differences:>6} {each.resets:>6} {each.missing:>7}"
    return f"{name:<17} {counts} {mean:>9} {period:>8}"


def _print_counts(title: str, counts: "Mapping[str, int]") -> None:
    if not counts:
        return
    click.echo(f"\n{title}:")
    for name, count in list(counts.items())[:_SHOWN]:
        click.echo(f"  {count:>7}  {name}")
    if len(counts) > _SHOWN:
        click.echo(f"  ... and {len(counts) - _SHOWN} more; --json has them all")


def _listed(names: list[str]) -> str:
    shown = "; ".join(names[:_SHOWN]) or "none"
    return shown if len(names) <= _SHOWN else f"{shown}; and {len(names) - _SHOWN} more"
