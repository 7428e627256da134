"""What the commands that say an override have in common: who says it, from when until when, and what is printed."""

import getpass
from dataclasses import dataclass

import click
import orjson

from headrace.infra.configuration.config import Config
from headrace.infra.overrides.heard import nobody_obeys
from headrace.infra.overrides.say import say
from headrace.infra.weights_tail.since import parse_since
from headrace.schemas.overrides import Override
from headrace.schemas.plain import to_plain
from headrace.solver.clocks import wall_clock_ms


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says an override, when it was said and when it ends, ms since the epoch."""

    author: str
    made_ms: int
    expires_ms: int


def speaker(command: str, author: str | None, duration: str) -> Speaker:
    """Give who speaks now, for so long; without an author it is the user.

    Raises:
        InvalidInputError: the duration is none.
    """
    now_ms = wall_clock_ms()
    for_ms = now_ms - parse_since(duration, now_ms, command, option="--for", versions=False).at_ms
    return Speaker(author or getpass.getuser(), now_ms, now_ms + for_ms)


def say_and_tell(
    command: str, config: Config, override: Override, words: str, *, as_json: bool, force: bool = False
) -> None:
    """Publish an override and print it, in words or as JSON; and on stderr, where no solver seems to obey it.

    Raises:
        HeadraceError: as `say`.
    """
    say(config, override, force=force)
    unheard = nobody_obeys(config.kafka, config.topics, wall_clock_ms())
    click.echo(orjson.dumps(to_plain(override)) if as_json else words)
    if unheard is not None:
        click.echo(f"headrace {command}: {unheard}", err=True)
