"""`headrace fleet`: what engines there are, as operators say it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.infra.command_line.nearest_command import NearestGroup
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.schemas.fleet import EngineSpec

MAX_NAMED = 10


@click.group(cls=NearestGroup)
def command() -> None:
    """Publish, list and remove engines and their latency profiles."""


def _print_form(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    from headrace.infra.fleet_records.file import form

    if value and not ctx.resilient_parsing:
        click.echo(form(), nl=False)
        ctx.exit()


@command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--form",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_form,
    help="Print a complete FILE, field by field, that applies as it is.",
)
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def apply(*, file: Path, config: Config, as_json: bool) -> None:
    """Publish the engines and profiles of FILE (TOML or JSON); those not in it are left as they are.

    An engine names the latency profile it behaves by, which is in FILE or was published before.

    \b
    headrace fleet apply --form > fleet.toml      # a complete file: three engines, one measured profile
    headrace fleet apply fleet.toml
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.fleet_records.file import read_fleet_file
    from headrace.infra.fleet_records.topics import left_out, publish_fleet, read_fleet

    fleet = read_fleet_file(file)
    publish_fleet(config.kafka, config.topics, fleet)
    left = left_out(read_fleet(config.kafka, config.topics).engines, fleet)
    if as_json:
        engines, profiles = [e.engine_id for e in fleet.engines], [p.profile_id for p in fleet.profiles]
        click.echo(json.dumps({"engines": engines, "profiles": profiles, "left_as_they_are": left}))
        return
    click.echo(f"published {_count(len(fleet.engines), 'engine')}, {_count(len(fleet.profiles), 'profile')}")
    if left:
        stay = "is not in the file and stays" if len(left) == 1 else "are not in the file and stay"
        named = f"{', '.join(left[:MAX_NAMED])}{', ...' if len(left) > MAX_NAMED else ''}"
        click.echo(f"{_count(len(left), 'engine')} of the topic {stay}: {named}; `headrace fleet remove` takes one out")


@command.command("list")
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_engines(*, config: Config, as_json: bool) -> None:
    """List the engines and profiles that are published."""
    from headrace.infra.fleet_records.topics import read_fleet
    from headrace.infra.overrides.records import read_overrides
    from headrace.schemas.plain import to_plain
    from headrace.solver.clocks import wall_clock_ms

    fleet, now_ms = read_fleet(config.kafka, config.topics), wall_clock_ms()
    overrides = [each for each in read_overrides(config.kafka, config.topics) if each.holds(now_ms)]
    if as_json:
        rows = {
            "engines": [to_plain(engine) for engine in fleet.engines],
            "profiles": [to_plain(profile) for profile in fleet.profiles],
            "overrides": [to_plain(override) for override in overrides],
            "unreadable": list(fleet.unreadable),
        }
        click.echo(json.dumps(rows))
        return
    for engine in fleet.engines:
        click.echo(_line(engine))
    for profile in fleet.profiles:
        click.echo(f"profile {profile.profile_id}: {profile.model} on {profile.hardware}, {profile.capacity_rps:g} rps")
    for override in overrides:
        what = f"{override.cluster} pinned to {override.share_words}" if override.cluster else override.kind.lower()
        click.echo(f"override {override.target}: {what} {override.words}")
    for problem in fleet.unreadable:
        click.echo(f"unreadable: {problem}", err=True)
    if not fleet.engines:
        click.echo("no engines; `headrace fleet apply FILE` publishes some, and with --form prints a FILE")


@command.command()
@click.argument("engines", nargs=-1, required=True)
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def remove(*, engines: tuple[str, ...], config: Config, as_json: bool) -> None:
    """Remove ENGINES from the fleet: a tombstone each, which takes their state and their weights away."""
    from headrace.infra.fleet_records.topics import remove_engines

    remove_engines(config.kafka, config.topics, engines)
    click.echo(json.dumps({"removed": list(engines)}) if as_json else f"removed {', '.join(engines)}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(engine: "EngineSpec") -> str:
    capacity = engine.capacity_rps_per_replica
    parts = [
        f"engine {engine.engine_id} at {engine.site}: {', '.join(engine.models)}",
        f"profile {engine.profile_id}",
        "the profile's capacity" if capacity is None else f"{capacity:g} rps a replica",
    ]
    if engine.capabilities:
        parts.append(f"can {', '.join(engine.capabilities)}")
    if engine.residency:
        parts.append(f"keeps data in {', '.join(engine.residency)}")
    if engine.address is not None:
        parts.append(engine.address)
    if engine.drain:
        parts.append("draining")
    return "; ".join(parts)
