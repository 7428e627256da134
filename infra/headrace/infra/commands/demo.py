"""`headrace demo`: the whole path on this machine, from engines' signals to routed requests."""

import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from headrace.infra.demo.session import Session
    from headrace.infra.fleet.scenario import Scenario
    from headrace.infra.fleet.script import Timed

DEFAULT_SCRIPT = "default"
UNATTENDED_S = 60.0
INTERRUPTED = 130


@click.command()
@click.option("--scenario", default="three-regions", show_default=True, help="Which clusters and engines.")
@click.option(
    "--broker",
    type=click.Choice(["embedded", "apache"]),
    default="embedded",
    show_default=True,
    help="Kind of broker to start.",
)
@click.option("--for", "duration", metavar="TIME", help="End after this long: 60s, 1m30s. Unattended: 60s.")
@click.option("--script", metavar="FILE", help="What happens when; `-` is standard input, `default` the scenario's.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of all that is drawn.")
@click.option(
    "--folder",
    default=".headrace/demo",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the workers' logs go.",
)
@click.option("--json", "as_json", is_flag=True, help="Run unattended and print the summary as JSON.")
@config_options
def command(
    *,
    scenario: str,
    broker: str,
    duration: str | None,
    script: str | None,
    seed: int,
    folder: Path,
    as_json: bool,
    config: Config,
) -> None:
    """Run a broker, the workers, three data planes and a simulated fleet; every request goes through a router.

    In a terminal: a live view, and keys to kill, slow, surge and shrink; Ctrl-C ends it as `q` does. Elsewhere, or with
    --json: unattended, by the scenario's script unless another is given. It starts a broker of its own, always.

    \b
    A script has one `t=TIME COMMAND` a line; times count from the first request:
      t=20s kill engine-b         likewise revive, restart, silence, heal
      t=30s slow engine-b 3       every latency x3
      t=30s errors engine-b 0.25  a quarter answered with errors
      t=40s replicas engine-c 2
      t=50s surge cluster-b 1.5   arrivals x1.5; `surge cluster-b 1` ends it
      t=60s phase calm            the summary reports latencies by phase
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    from headrace.infra.demo.keys import Keys
    from headrace.infra.demo.run import run_unattended, run_with_view
    from headrace.infra.demo.session import BrokerGoneError, DemoOptions, Session
    from headrace.infra.demo.workers import WorkerEndedError
    from headrace.infra.fleet.scenarios import load_scenario

    _own_broker_only(config)
    found = load_scenario(scenario)
    attended = sys.stdout.isatty() and sys.stdin.isatty() and not as_json
    timed = _script(found, script or (None if attended else DEFAULT_SCRIPT))
    for_s = None if attended else UNATTENDED_S
    if duration is not None:
        for_s = _duration_s(duration)
    session = Session(DemoOptions(found, broker, seed, folder.resolve(), timed), config)
    ended: WorkerEndedError | None = None
    with _terminable() as ask_to_stop, Keys(enabled=attended) as keys:
        try:
            _say(f"starting: {broker} broker, streams, solver, {len(found.clusters)} data planes; logs in {folder}")
            session.start()
            _say(f"first request routed {session.times.first_routed_request_s:.1f} s after the start")
            _say(f"look at it in a browser: headrace console --config {folder}/headrace.toml")
            stopped = ask_to_stop()
            try:
                if attended:
                    run_with_view(session, for_s, stopped, keys)
                else:
                    run_unattended(session, for_s or UNATTENDED_S, stopped, _say)
            except WorkerEndedError as error:
                # What ran until then is summed up all the same.
                ended = error
                session.finish()
        except KeyboardInterrupt:
            _say("stopped")
            sys.exit(INTERRUPTED)
        finally:
            _stop(session)
    _sum_up(session, as_json=as_json)
    if ended is not None:
        raise ended
    if session.broker_ended is not None:
        raise BrokerGoneError(f"the broker ended in mid-run, so this is no whole demo: {session.broker_ended}")
    if stopped() and not attended:
        _say("stopped before its time")
        sys.exit(INTERRUPTED)


def _sum_up(session: "Session", *, as_json: bool) -> None:
    from headrace.infra.demo.summary import summary, summary_lines

    result = summary(session)
    text = orjson.dumps(result, option=orjson.OPT_INDENT_2) if as_json else "\n".join(summary_lines(result))
    click.echo(text)


def _own_broker_only(config: Config) -> None:
    """Say that the demo has a broker of its own to whoever has named another."""
    from headrace.schemas.bus.settings import KafkaSettings

    given = click.get_current_context().params
    if given["bootstrap"] is not None or any(text.startswith("kafka.") for text in given["settings"]):
        raise click.UsageError(
            "the demo starts a broker of its own and touches no other, so kafka.* and --bootstrap have no use here; "
            "--broker says of which kind"
        )
    if config.kafka != KafkaSettings():
        _say("the demo starts a broker of its own: kafka.* of your configuration is not used")


def _stop(session: "Session") -> None:
    """End all that was started; whoever interrupts that ends it at once, and the children end with this process."""
    try:
        session.stop()
    except KeyboardInterrupt:
        _say("stopped at once")
        sys.exit(INTERRUPTED)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _script(scenario: "Scenario", source: str | None) -> "tuple[Timed, ...]":
    from headrace.infra.configuration.expected import why_unreadable
    from headrace.infra.fleet.script import parse_script
    from headrace.schemas.errors import InvalidInputError

    if source is None:
        return ()
    if source == DEFAULT_SCRIPT:
        return parse_script(scenario.default_script, scenario.names)
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("script", (f"{source} {why_unreadable(error)}",)) from error
    return parse_script(text, scenario.names)


def _duration_s(text: str) -> float:
    from headrace.infra.fleet.script import parse_duration_s

    try:
        found = parse_duration_s(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from error
    if found <= 0.0:
        raise click.BadParameter(f"time is {text!r}; more than 0", param_hint="--for")
    return found


@contextmanager
def _terminable() -> "Generator[Callable[[], Callable[[], bool]]]":
    """Let SIGTERM end the demo as Ctrl-C does, so that it, too, leaves nothing behind.

    Gives a function to be called once requests are served. From then on the first of these signals only asks to stop,
    so that the demo ends with its summary, and the next one interrupts; what it gives says whether one has asked.
    """
    before = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, signal.SIGTERM)}
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        asked.append(number)
        for each in before:
            signal.signal(each, signal.default_int_handler)

    def ask_to_stop() -> "Callable[[], bool]":
        for each in before:
            signal.signal(each, ask)
        return lambda: bool(asked)

    try:
        yield ask_to_stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
