"""`headrace profile`: latency profiles from load tests, or from what running engines said of themselves."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.solver.core.profile.fit_profile import FittedProfile
    from headrace.solver.core.profile.load_test import LoadTest


def _print_form(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    from headrace.infra.load_tests import forms

    if value and not ctx.resilient_parsing:
        click.echo(forms.__doc__)
        ctx.exit()


@click.group()
def command() -> None:
    """Fit latency profiles (capacity, TTFT and TBOT against load) to load tests, or to running engines."""


@command.command(epilog="The columns of CSV: headrace profile fit --form.")
@click.argument("csv", metavar="CSV", required=False)
@click.option("--topic", metavar="NAME", help="Instead of CSV: a topic of engine states (or signals), read to its end.")
@click.option("--from", "from_text", metavar="TIME", help="With --topic: records from then on: 2h, 2026-01-02T03:04Z.")
@click.option(
    "--form", is_flag=True, is_eager=True, expose_value=False, callback=_print_form, help="Print the file's forms."
)
@click.option(
    "--curve", "--variant", "curves", multiple=True, metavar="ID", help="Fit this curve only; may be repeated."
)
@click.option("--hardware", help="GPU and count, for the record, in place of what the file says.")
@click.option("--model", help="Model and precision, likewise.")
@click.option("--source", help="Where the data are from, likewise.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write a file for `headrace fleet apply`.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw curves and data: .png, .svg or .html."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: records, errors by stage, reasons of refusals.")
@config_options
def fit(
    *,
    config: Config,
    csv: str | None,
    topic: str | None,
    from_text: str | None,
    curves: tuple[str, ...],
    hardware: str | None,
    model: str | None,
    source: str | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Fit profiles to the load tests of CSV, a file or a table that ships (silicon_curves_agg), or to a topic.

    Curves of one hardware, model and configuration share a shape, so the whole file counts even with --curve. The
    exit status is 1 where a curve is refused; those that fit are written all the same. Of a topic, each window of an
    engine counts as a stage of one replica, and engines of one profile as one load test.

    \b
    headrace profile fit load.csv --out profiles.toml --plot fit.html
    headrace profile fit --topic headrace.state.engine --from 1d --out profiles.toml
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.load_tests.fit_report import as_json as json_of
    from headrace.infra.load_tests.fit_report import as_text
    from headrace.solver.core.profile.fit_profile import FittedProfile, fit_profiles

    given = {"hardware": hardware, "model": model, "source": source}
    tests = _tests(config, csv, (topic, from_text), {name: text for name, text in given.items() if text is not None})
    wanted = _chosen(tests, curves)
    _check_plot(plot, len(wanted))
    outcomes = fit_profiles(tests, wanted)
    fitted = [outcome for outcome in outcomes if isinstance(outcome, FittedProfile)]
    if fitted:
        _write(fitted, out, plot)
    click.echo(orjson.dumps(json_of(outcomes), option=orjson.OPT_INDENT_2) if as_json else as_text(outcomes))
    if len(fitted) < len(outcomes):
        raise click.exceptions.Exit(1)


def _tests(
    config: Config, csv: str | None, read: tuple[str | None, str | None], given: dict[str, str]
) -> "tuple[LoadTest, ...]":
    from dataclasses import replace

    topic, from_text = read
    if (csv is None) is (topic is None):
        raise click.UsageError("give one of CSV and --topic")
    if topic is None:
        from headrace.infra.load_tests.csv_table import read_csv
        from headrace.infra.load_tests.forms import load_tests

        if from_text is not None:
            raise click.UsageError("--from is for --topic: a file has no time")
        return load_tests(read_csv(csv or ""), given, lambda sentence: click.echo(sentence, err=True))
    from headrace.infra.load_tests.topic import read_topic
    from headrace.infra.replay_history.range import parse_range

    from_ms = None if from_text is None else parse_range(from_text, None).from_ms
    tests = read_topic(config, topic, from_ms, lambda sentence: click.echo(sentence, err=True))
    return tuple(replace(test, labels=replace(test.labels, **given)) for test in tests)


def _chosen(tests: "tuple[LoadTest, ...]", curves: tuple[str, ...]) -> frozenset[str]:
    """Give the profile ids that `curves` names, each as in its file (`4`, `vllm`) or as in the record; all for none."""
    from difflib import get_close_matches

    from headrace.schemas.errors import InvalidInputError

    names = {test.name: test.labels.profile_id for test in tests}
    ids = set(names.values())
    unknown = [curve for curve in curves if curve not in names and curve not in ids]
    if unknown:
        near = {curve: get_close_matches(curve, [*names, *ids], n=1) for curve in unknown}
        raise InvalidInputError(
            "--curve",
            tuple(
                f"{c!r} is no curve of the file" + (f"; the nearest is {n[0]!r}" if n else "") for c, n in near.items()
            ),
        )
    return frozenset(names.get(curve, curve) for curve in curves) or frozenset(ids)


def _check_plot(plot: Path | None, curves: int) -> None:
    if plot is None:
        return
    from headrace.infra.load_tests.plot import plot_problem
    from headrace.schemas.errors import InvalidInputError

    problem = plot_problem(plot, curves)
    if problem is not None:
        raise InvalidInputError("--plot", (problem,))


def _write(fitted: "list[FittedProfile]", out: Path | None, plot: Path | None) -> None:
    from headrace.infra.load_tests.profile_toml import profiles_toml
    from headrace.schemas.errors import InvalidInputError

    if out is not None:
        try:
            out.write_text(profiles_toml(fit.profile for fit in fitted), "utf-8")
        except OSError as error:
            raise InvalidInputError(str(out), (f"cannot be written: {error.strerror}",)) from error
    if plot is not None:
        from headrace.infra.load_tests.plot import draw

        draw(fitted, plot)
