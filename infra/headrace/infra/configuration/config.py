"""The one configuration: headrace.toml < HEADRACE_* variables < flags, checked as a whole before anything starts.

Unknown keys are errors that name the nearest known one; all problems are told at once, each with the value, where it
came from, and the bound. Every section is a frozen dataclass that lives with the component it configures.
"""

import dataclasses
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click
import pydantic

from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.configuration.env_names import meant_variable
from headrace.infra.configuration.expected import should_be
from headrace.infra.configuration.sources import PREFIX, find_file, overlaid, read_env, read_file, read_flags
from headrace.infra.configuration.text import masked, to_toml
from headrace.infra.configuration.tree import Path as KeyPath
from headrace.infra.configuration.tree import Tree, dotted, fitted, leaves, not_finite
from headrace.infra.console.settings import ConsoleSettings
from headrace.infra.gateway.settings import GatewaySettings
from headrace.infra.log.settings import LogSettings
from headrace.infra.redaction.settings import RedactSettings
from headrace.infra.secrets import secrets_of, without_secrets
from headrace.infra.sidecar.settings import SidecarSettings
from headrace.schemas.bus.settings import KafkaSettings, RegistrySettings, kafka_problems
from headrace.schemas.errors import HeadraceError, InvalidInputError
from headrace.schemas.topics import TopicSettings, topic_table
from headrace.solver.settings import SolverSettings
from headrace.streams.bridge.settings import BridgeSettings
from headrace.streams.settings import StreamsSettings


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting of headrace, valid."""

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    topics: TopicSettings = field(default_factory=TopicSettings)
    bridge: BridgeSettings = field(default_factory=BridgeSettings)
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    solver: SolverSettings = field(default_factory=SolverSettings)
    dataplane: DataPlaneSettings = field(default_factory=DataPlaneSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    sidecar: SidecarSettings = field(default_factory=SidecarSettings)
    log: LogSettings = field(default_factory=LogSettings)
    redact: RedactSettings = field(default_factory=RedactSettings)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each value came from that is not a default."""

    config: Config
    origins: Mapping[KeyPath, str]


def load(path: Path | None = None, overrides: Mapping[str, str] | None = None) -> Config:
    """Read and check the configuration.

    Args:
        path: the TOML file; where None, $HEADRACE_CONFIG or ./headrace.toml, if there is one.
        overrides: values by TOML key (`solver.period_ms`), which win over the file and the environment.

    Raises:
        InvalidInputError: with every problem of every source.
    """
    return load_with_origins(path, overrides or {}, os.environ).config


def load_with_origins(path: Path | None, overrides: Mapping[str, str], env: Mapping[str, str]) -> Loaded:
    """Read and check the configuration, and remember where its values came from.

    Raises:
        InvalidInputError: with every problem of every source.
    """
    problems: list[str] = []
    file = find_file(path, env)
    raw: dict[str, Tree] = {str(file): read_file(file, problems)}
    raw |= read_env(env, problems) | read_flags(overrides, problems)
    trees: dict[str, Tree] = {}
    for origin, tree in raw.items():
        unknown: list[str] = []
        trees[origin] = fitted(Config, tree, (), unknown)
        problems += [f"{_hinted(problem, origin)} (from {origin})" for problem in unknown]
    origins = {place: origin for origin, tree in trees.items() for place, _ in leaves(tree)}
    # Over the defaults: naming one request class must not take away the default one.
    sections = _sections(overlaid({"": dataclasses.asdict(Config())} | trees), origins, problems)
    if problems:
        raise InvalidInputError("configuration", tuple(problems))
    return Loaded(Config(**sections), origins)


def config_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --config, --bootstrap, --set, --print-config and --check-config to a command: it gets one `config`."""

    @wraps(command)
    def run(
        *args: Any,  # noqa: ANN401 - the command's own parameters pass through
        config_file: Path | None,
        bootstrap: str | None,
        settings: tuple[str, ...],
        print_config: bool,
        check_config: bool,
        **more: Any,  # noqa: ANN401 - the command's own parameters pass through
    ) -> None:
        loaded = load_with_origins(config_file, _overrides(bootstrap, settings), os.environ)
        if print_config:
            click.echo(to_toml(loaded.config, loaded.origins), nl=False)
        elif check_config:
            _check_clients(loaded.config.kafka)
            click.echo("the configuration is right")
        else:
            _run(command, loaded.config, *args, **more)

    wrapped: Callable[..., None] = run
    for option in _OPTIONS:
        wrapped = option(wrapped)
    return wrapped


def _check_clients(kafka: KafkaSettings) -> None:
    from headrace.infra.kafka_edge import client_problems  # noqa: PLC0415 - the Kafka client is loaded only where it is used

    problems = client_problems(kafka)
    if problems:
        raise InvalidInputError("configuration", problems)


def _run(command: Callable[..., None], settings: Config, *args: Any, **more: Any) -> None:  # noqa: ANN401 - the command's own parameters pass through
    """Run a command; what a Kafka client raises out of it becomes a message with the key or the address.

    No message has a secret of the configuration in it, whoever wrote it.
    """
    try:
        command(*args, config=settings, **more)
    except HeadraceError as error:
        raise _told(error, settings) from error.__cause__
    except Exception as error:
        from headrace.infra.kafka_edge import failure_of  # noqa: PLC0415 - as above

        failure = failure_of(error, settings.kafka)
        if failure is None:
            raise
        raise _told(failure, settings) from None


def _told(error: HeadraceError, settings: Config) -> HeadraceError:
    """Give the error as it may be told: itself, or without the secrets that were in its message."""
    told = without_secrets(str(error), secrets_of(settings))
    return error if told == str(error) else HeadraceError(told)


def _hinted(problem: str, origin: str) -> str:
    """Give the problem of an unknown setting; one that a variable names wrongly is told with the right variable."""
    meant = None
    if origin.startswith(PREFIX):
        meant = meant_variable(origin, (path for path, _ in leaves(dataclasses.asdict(Config()))))
    return problem if meant in (None, origin) else f"{problem.partition('; ')[0]}; did you mean {meant}?"


_OPTIONS: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option("--check-config", is_flag=True, help="Check the configuration and stop."),
    click.option("--print-config", is_flag=True, help="Print every setting and where it came from, and stop."),
    click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one: solver.period_ms=250."),
    click.option("--bootstrap", metavar="HOST:PORT", help="Kafka's address: kafka.bootstrap_servers."),
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The TOML file; else $HEADRACE_CONFIG, else ./headrace.toml if there is one.",
    ),
)


def _overrides(bootstrap: str | None, settings: tuple[str, ...]) -> dict[str, str]:
    wrong = [text for text in settings if "=" not in text]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not KEY=VALUE", param_hint="--set")
    found = {} if bootstrap is None else {"kafka.bootstrap_servers": bootstrap}
    return found | {key.strip(): value.strip() for key, _, value in (text.partition("=") for text in settings)}


def _sections(tree: Tree, origins: Mapping[KeyPath, str], problems: list[str]) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(Config).items():
        found = list(_section_problems(name, kind, tree.get(name, {}), origins, sections))
        problems += found
    if "kafka" in sections:
        problems += kafka_problems(sections["kafka"])
    if "topics" in sections:
        try:
            topic_table(sections["topics"])
        except InvalidInputError as error:
            problems += [f"topics.{problem}" for problem in error.problems]
    return sections


def _section_problems(
    name: str, kind: type, tree: object, origins: Mapping[KeyPath, str], sections: dict[str, Any]
) -> Iterator[str]:
    """Validate one section; put it into `sections` where it is right, give its problems where not."""
    try:
        section: Any = pydantic.TypeAdapter(kind).validate_python(tree)
    except pydantic.ValidationError as error:
        for each in error.errors(include_url=False, include_context=False):
            path = (name, *map(str, each["loc"]))
            if each["type"] == "missing":
                yield f"{dotted(path)} is missing{_where(path, origins)}"
            else:
                yield _sentence(path, each["input"], should_be(kind, each), origins)
        return
    except InvalidInputError as error:
        yield from error.problems
        return
    wild = list(not_finite(dataclasses.asdict(section)))
    yield from (_sentence((name, *path), value, "it should be finite", origins) for path, value in wild)
    if not wild:
        sections[name] = section


def _sentence(path: KeyPath, value: object, message: str, origins: Mapping[KeyPath, str]) -> str:
    shown = masked(path[-1], str(value)) if isinstance(value, str) else value
    return f"{dotted(path)} is {shown!r}{_where(path, origins)}; {message}"


def _where(path: KeyPath, origins: Mapping[KeyPath, str]) -> str:
    origin = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), None)
    return f" (from {origin})" if origin else ""
