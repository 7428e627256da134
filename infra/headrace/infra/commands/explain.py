"""`headrace explain`: why a cluster sends an engine what it does, now or at any tick that history holds."""

from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.command_line.schema_flag import schema_flag
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.infra.weight_why.report import AskedWeight, WeightReport
    from headrace.schemas.codec import SchemaSource


@click.command()
@click.argument("cluster")
@click.argument("engine")
@click.option("--model", help="The model, where the cluster asks for several.")
@click.option("--class", "request_class", help="The request class, where there are several.")
@click.option("--at", "at_text", metavar="VERSION|AGE|TIME", help="Of that tick: 812, 5m, 2026-01-02T03:04Z; else now.")
@click.option("--history", metavar="AGE", default="10m", show_default=True, help="How far back the weight is told.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (its schema: --schema).")
@click.option("--redact", is_flag=True, is_eager=True, help="JSON that may leave the company: no addresses, no rates.")
@schema_flag(lambda given: "explain-redacted" if given.get("redact") else "explain", eager=True)
@config_options
def command(
    *,
    config: Config,
    cluster: str,
    engine: str,
    model: str | None,
    request_class: str | None,
    at_text: str | None,
    history: str,
    as_json: bool,
    redact: bool,
) -> None:
    """Say why CLUSTER sends ENGINE what it does: three sentences, the price in its parts, what binds, what acted.

    The tick is computed again from what the solver had read, by its own program: nothing is guessed. It reads topics
    and writes none.

    \b
    headrace explain tokyo engine-b
    headrace explain tokyo engine-b --at 2026-01-02T03:04Z --json | jq .terms_ms
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be re-wrapped
    from headrace.infra.weight_why.lines import report_lines
    from headrace.infra.weight_why.report import AskedWeight
    from headrace.schemas.plain import to_plain

    report = _report(config, AskedWeight(cluster, engine, model, request_class), at_text, history)
    if redact:
        from headrace.infra.redaction.secret import open_redaction

        told = open_redaction(config.redact, lambda sentence: click.echo(f"headrace explain: {sentence}", err=True))
        click.echo(orjson.dumps(to_plain(told.report(report))))
        return
    click.echo(orjson.dumps(to_plain(report)) if as_json else "\n".join(report_lines(report)))


def _report(config: Config, asked: "AskedWeight", at_text: str | None, history: str) -> "WeightReport":
    from headrace.infra.past_tick.wanted import parse_wanted
    from headrace.infra.weight_why.ask import ask_why
    from headrace.infra.weights_tail.since import parse_since
    from headrace.solver.clocks import wall_clock_ms

    now_ms = wall_clock_ms()
    wanted = parse_wanted(at_text, now_ms, "explain")
    since = parse_since(history, now_ms, "explain", option="--history", versions=False)
    return ask_why(config, asked, wanted, now_ms, max(0, now_ms - since.at_ms), _registry(config))


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
