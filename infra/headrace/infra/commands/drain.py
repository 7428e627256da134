"""`headrace drain`: take the traffic off an engine for a while, with who says so, why and until when."""

import getpass
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.config import Config, config_options

if TYPE_CHECKING:
    from headrace.infra.what_if.answer import WhatIf


@click.command()
@click.argument("engine")
@click.option("--reason", required=True, help="Why; it stands in every snapshot that it touches.")
@click.option("--for", "duration", metavar="AGE", default="1h", show_default=True, help="For how long: 30m, 2h, 1d.")
@click.option("--author", help="Who says so. [default: the user's name]")
@click.option("--force", is_flag=True, help="Even where requests are shed for it, or it cannot be told.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *, config: Config, engine: str, reason: str, duration: str, author: str | None, force: bool, as_json: bool
) -> None:
    """Give ENGINE no traffic until it expires, or `headrace undrain` takes it back. Nothing else about it changes.

    First the tick that stands is solved without it: where requests would be shed for it, it is refused, with the
    numbers. The solver obeys at its next tick; `headrace tail --diff` shows the move.

    Example: headrace drain engine-b --reason "driver upgrade, OPS-812" --for 2h
    """
    from headrace.infra.overrides import publish_override, refusal, sound
    from headrace.infra.weights_tail.since import parse_since
    from headrace.schemas.errors import HeadraceError
    from headrace.schemas.overrides import Override, OverrideKind
    from headrace.schemas.plain import to_plain
    from headrace.solver.clocks import wall_clock_ms

    now_ms = wall_clock_ms()
    for_ms = now_ms - parse_since(duration, now_ms, "drain", option="--for", versions=False).at_ms
    author = author or getpass.getuser()
    override = sound(Override(OverrideKind.DRAIN, engine, author, reason, now_ms, now_ms + for_ms))
    if not force:
        refused = refusal(_what_if(config, engine, now_ms))
        if refused is not None:
            raise HeadraceError(f"refused: {refused}; --force does it all the same")
    publish_override(config.kafka, config.topics, override)
    click.echo(orjson.dumps(to_plain(override)) if as_json else f"{override.target} is drained {override.words}")


def _what_if(config: Config, engine: str, now_ms: int) -> "WhatIf":
    """Solve the tick that stands without the engine.

    Raises:
        HeadraceError: it cannot be told what would become of it.
    """
    from headrace.infra.past_tick.again import NotDecidedError, compute_again
    from headrace.infra.past_tick.find import NoTickError, find_tick
    from headrace.infra.past_tick.wanted import Wanted
    from headrace.infra.what_if.answer import what_if
    from headrace.infra.what_if.edits import parse_edits
    from headrace.schemas.errors import HeadraceError
    from headrace.solver.glop import Glop

    lp, not_told = Glop(), "what comes of it cannot be told"
    try:
        found, _ = find_tick(config, Wanted(), now_ms)
        again = compute_again(found, lp)
    except (NoTickError, NotDecidedError) as error:
        raise HeadraceError(f"{not_told}: {error}; --force does it all the same") from error
    commit = found.recorded.snapshot.commit
    if again.tick.decision is None:
        raise HeadraceError(f"{not_told}: {commit.status}, {commit.sentence}; --force does it all the same")
    return what_if(again, parse_edits((), (), (engine,), (), again.problem), found.settings, lp, proved=found.proved)
