"""`headrace solver`: reads the state topics, computes the weights each period, publishes them as snapshots."""

from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.schemas.codec import SchemaSource


@click.command()
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="info says each tick in a line, warning only what someone should look at.",
)
@click.option("--shadow", metavar="POLICY", help="Only look on, by another policy: lp:move_price_ms=50.")
@config_options
def command(*, config: Config, log_level: str, shadow: str | None) -> None:
    """Run the solver until it is stopped (SIGTERM, SIGINT). Logs as log.format says.

    A second one stands by and takes over when the first ends, unless solver.leader_election is off: then the one
    started last takes over at once, and the one before it ends with status 1.

    With --shadow it decides from the same inputs by another policy, beginning at the live weights, and writes snapshots
    of mode SHADOW to a topic of their own, by which nobody routes: `headrace replay compare` holds them against the
    live ones.

    Example: headrace solver --set solver.period_ms=250
    """
    from headrace.infra.log.lines import open_log
    from headrace.infra.metrics import counts_of
    from headrace.infra.processes.stopping import end_process, stop_on_signals
    from headrace.solver.heap import seldom_collected
    from headrace.solver.metrics import TABLE
    from headrace.solver.serve import make_shadow, make_worker

    log, registry = open_log(config, log_level), _registry(config)
    counts = counts_of("solver" if shadow is None else "shadow", TABLE, config.solver, section="solver")
    if shadow is None:
        worker = make_worker(config.kafka, config.topics, config.solver, log, registry, counts)
    else:
        from headrace.replay.core.variant import parse_variants

        (variant,) = parse_variants((shadow,), (), config.solver)
        worker = make_shadow(config.kafka, config.topics, variant.settings, log, registry, counts)
    with seldom_collected():
        worker.run(stop_on_signals())
    end_process()


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
