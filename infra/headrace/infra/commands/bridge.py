"""`headrace bridge`: publishes the telemetry of teams' own topics as signals."""

from typing import TYPE_CHECKING

import click

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.schemas.codec import SchemaSource
    from headrace.streams.bridge.worker import Source


@click.command()
@click.option("--dry-run", is_flag=True, help="Print what the newest records would be published as; publish nothing.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Records of a dry run.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="info says every few seconds what was done, warning only what someone should look at.",
)
@config_options
def command(*, config: Config, dry_run: bool, limit: int, log_level: str) -> None:
    """Read the topics under [bridge.sources] and publish signals until stopped (SIGTERM, SIGINT).

    The first time it begins at the end of each topic, and its log says how many records it leaves; with
    --set bridge.begin=earliest it begins at the oldest. From then on it goes on where it was.

    Several share the partitions. What cannot be used goes to dead letters. Killed at any moment, it loses nothing and
    counts nothing twice. Logs to standard error, as log.format says.

    Example: headrace bridge --dry-run --limit 20
    """
    from headrace.infra.configuration.bridge_sources import read_sources
    from headrace.infra.kafka_edge import require_topics
    from headrace.infra.log.lines import open_log
    from headrace.infra.metrics import counts_of
    from headrace.infra.processes.stopping import stop_on_signals
    from headrace.schemas.topics import DEAD_LETTERS, SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK, topic_table
    from headrace.streams.bridge.metrics import TABLE
    from headrace.streams.bridge.worker import Bridge
    from headrace.streams.heap import settle_memory

    sources = read_sources(config.bridge, _registry(config))
    require_topics(config.kafka, [source.topic for source in sources], ours=False)
    if dry_run:
        _print_signals(config, sources, limit)
        return
    table = topic_table(config.topics)
    written = (SIGNALS_ENGINE, SIGNALS_DEMAND, SIGNALS_NETWORK, DEAD_LETTERS)
    require_topics(config.kafka, [table[role].name for role in written])
    stopped, log = stop_on_signals(), open_log(config, log_level)
    log.info("bridge ready", sources={source.name: source.topic for source in sources}, group=config.bridge.group_id)
    counts = counts_of("bridge", TABLE, config.bridge)
    settle_memory()
    Bridge(config.kafka, table, config.bridge, sources, log, counts).run(stopped)


def _print_signals(config: Config, sources: "Iterable[Source]", limit: int) -> None:
    import time

    from headrace.infra.signal_line import json_line
    from headrace.infra.topic_readers.sample import sample_topic
    from headrace.streams.bridge.tally import Tally
    from headrace.streams.core.canonical.packs import Packs

    tally = Tally()
    for source in sources:
        for record in sample_topic(config.kafka, source.topic, limit, timeout_s=30.0):
            translated = source.translator.translate(record, time.time_ns() // 1_000_000)
            tally.add(translated)
            packs = Packs(record.topic, record.partition, source.translator.mapping.hash, "dry-run")
            packs.add(translated)
            for signal in packs.take():
                tally.published += 1
                click.echo(json_line(signal))
    click.echo(f"headrace: a dry run: {tally.sentence('would be published')}", err=True)
    for detail, count in tally.rejects.most_common(10):
        click.echo(f"  {count:>6}  {detail}", err=True)


def _registry(config: Config) -> "SchemaSource | None":
    if not config.registry.url:
        return None
    from headrace.schemas.bus.registry import Registry

    return Registry(config.registry)
