"""`headrace topics`: make the topics what the topic table says, and say where they differ."""

import json
import sys
from typing import TYPE_CHECKING

import click

from headrace.infra.command_line.nearest_command import NearestGroup
from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from headrace.infra.provision import TopicDifference


@click.group(cls=NearestGroup)
def command() -> None:
    """Create, compare and list headrace's topics."""


@command.command()
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def apply(*, config: Config, as_json: bool) -> None:
    """Create missing topics and set what differs; what cannot be mended is named, and the exit status is 1.

    Partitions and replication are never changed. Applying twice changes nothing the second time.
    """
    from headrace.infra.provision import apply_topics

    outcomes = apply_topics(config.kafka, config.topics)
    if as_json:
        rows = [
            {"topic": o.topic, "outcome": o.outcome, "differences": [_plain(d) for d in o.differences]}
            for o in outcomes
        ]
        click.echo(json.dumps(rows))
    else:
        for each in outcomes:
            click.echo(f"{each.outcome:<17} {each.topic}")
            for difference in each.differences:
                if difference.setting != "topic":
                    click.echo(f"  {difference.sentence}")
    if any(each.outcome == "cannot be mended" for each in outcomes):
        sys.exit(1)


@command.command()
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(*, config: Config, as_json: bool) -> None:
    """Say what each topic has and what it should have, setting by setting; exit status 1 where anything differs."""
    from headrace.infra.provision import diff_topics

    differences = diff_topics(config.kafka, config.topics)
    if as_json:
        click.echo(json.dumps([_plain(each) for each in differences]))
    else:
        for each in differences:
            click.echo(each.sentence)
        if not differences:
            click.echo("every topic is as it should be")
    if differences:
        sys.exit(1)


@command.command("list")
@config_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_topics(*, config: Config, as_json: bool) -> None:
    """List the topics as they should be, from the configuration alone; no broker is asked."""
    from headrace.schemas.topics import topic_table

    table = topic_table(config.topics).values()
    if as_json:
        rows = [
            {
                "role": topic.role,
                "topic": topic.name,
                "key": topic.key,
                "record": topic.record.__name__,
                "partitions": topic.partitions,
                "replication": topic.replication,
                "config": dict(topic.config),
            }
            for topic in table
        ]
        click.echo(json.dumps(rows))
        return
    click.echo("as configured (not checked against a broker; see `headrace topics diff`)")
    width = max(len(topic.name) for topic in table)
    click.echo(f"{'topic':<{width}}  {'parts':>5}  {'cleanup':<7}  {'key':<30}  record")
    for topic in table:
        cleanup = topic.config["cleanup.policy"]
        line = f"{topic.name:<{width}}  {topic.partitions:>5}  {cleanup:<7}  {topic.key:<30}  {topic.record.__name__}"
        click.echo(line)


def _plain(difference: "TopicDifference") -> dict[str, object]:
    return {
        "topic": difference.topic,
        "setting": difference.setting,
        "has": difference.has,
        "should": difference.should,
        "can_be_mended": difference.can_be_mended,
    }
