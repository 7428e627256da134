"""`headrace doctor`: is it all right; and if not, what is wrong, what it means, and the command that mends it."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.command_line.schema_flag import schema_flag
from headrace.infra.configuration.config import Config, config_options
from headrace.schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from headrace.infra.doctor.core.checks import NamedCheck
    from headrace.infra.doctor.core.diagnosis import Report


RESERVE_SHARE = 0.2
MOST_RESERVE_S = 5.0
MENDS_CONFIG = "headrace doctor --check-config"


class _Doctor(click.Command):
    """A configuration that cannot be used is a finding, too."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except InvalidInputError as error:
            _tell(_misconfigured(error), as_json=bool(ctx.params.get("as_json")))
            return None


def _print_checks(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    from headrace.infra.doctor.core.checks import check_named, check_names

    if value and not ctx.resilient_parsing:
        for name in check_names():
            click.echo(f"{name:<14} {check_named(name).about}")
        ctx.exit()


@click.command(cls=_Doctor)
@click.option("--only", multiple=True, metavar="CHECK", help="Only these checks; commas, or give it again.")
@click.option("--skip", multiple=True, metavar="CHECK", help="All but these checks.")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_print_checks, help="List the checks."
)
@click.option(
    "--timeout", type=click.FloatRange(1, 600), default=30.0, show_default=True, help="Seconds for all that is asked."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (its schema: --schema).")
@schema_flag(lambda _: "doctor", eager=True)
@config_options
def command(*, config: Config, only: tuple[str, ...], skip: tuple[str, ...], timeout: float, as_json: bool) -> None:
    """Look at everything, and say what is wrong, what it means, and the command that mends it. Healthy: one line.

    It reads, and changes nothing. Exit status: 0 healthy, 1 something was found, 2 no broker answers, or the command or
    its configuration cannot be used.

    \b
    headrace doctor
    headrace doctor --only topics,permissions --json | jq -r '.findings[].mend[]'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.doctor.core.diagnosis import diagnose
    from headrace.infra.doctor.core.with_flags import without
    from headrace.infra.doctor.gather.gather import gather
    from headrace.infra.secrets import secrets_of, without_secrets
    from headrace.solver.clocks import wall_clock_ms

    checks = _wanted(only, skip)
    picture, secrets = gather(config, wall_clock_ms, timeout - reserve_s(timeout)), secrets_of(config)
    report = without(diagnose(picture, picture.at_ms, checks), lambda text: without_secrets(text, secrets))
    _tell(report, as_json=as_json)


def reserve_s(timeout_s: float) -> float:
    """Give the part of the time that is kept for judging, printing and letting the clients go."""
    return min(MOST_RESERVE_S, RESERVE_SHARE * timeout_s)


def _wanted(only: tuple[str, ...], skip: tuple[str, ...]) -> "tuple[NamedCheck, ...]":
    from headrace.infra.doctor.core.checks import chosen

    def names(given: tuple[str, ...]) -> list[str]:
        return [name.strip() for each in given for name in each.split(",") if name.strip()]

    try:
        return chosen(names(only), names(skip))
    except InvalidInputError as error:
        raise click.UsageError("; ".join(error.problems)) from error


def _misconfigured(error: InvalidInputError) -> "Report":
    from headrace.infra.doctor.core.contract import fault
    from headrace.infra.doctor.core.diagnosis import report_of
    from headrace.solver.clocks import wall_clock_ms

    findings = [
        replace(fault("configuration", problem, "nothing that reads it starts", MENDS_CONFIG), check="settings")
        for problem in error.problems
    ]
    return report_of(None, wall_clock_ms(), ("settings",), findings)


def _tell(report: "Report", *, as_json: bool) -> None:
    from headrace.infra.doctor.command_line import takes_configuration
    from headrace.infra.doctor.core.lines import report_lines
    from headrace.infra.doctor.core.with_flags import with_flags
    from headrace.schemas.plain import to_plain

    report = with_flags(report, click.get_current_context().params, takes_configuration)
    click.echo(orjson.dumps(to_plain(report)) if as_json else "\n".join(report_lines(report)))
    sys.exit(report.status)
