"""`headrace broker`: start a broker to try things on, or fetch what one needs."""

from pathlib import Path

import click

from headrace.infra.command_line.nearest_command import NearestGroup

DEFAULT_PORT = 9092


@click.group(cls=NearestGroup)
def command() -> None:
    """Start a Kafka broker on this machine: the embedded one, or Apache Kafka itself."""


@command.command()
@click.option("--kind", type=click.Choice(("embedded", "apache")), default="embedded", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0: any free one."
)
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep what it stores here (apache).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when it is ready.")
def up(*, kind: str, port: int, data_dir: Path | None, as_json: bool) -> None:
    """Run a broker in the foreground until Ctrl-C.

    The embedded broker keeps everything in memory. Apache Kafka needs Java 17, and Maven the first time; without
    --data-dir it stores in a temporary folder that goes with it.
    """
    import json
    import signal
    import threading

    from headrace.infra.brokers import start_broker
    from headrace.infra.brokers.contract import BrokerError
    from headrace.schemas.made_folder import made_folder

    if data_dir is not None and kind != "apache":
        raise click.UsageError("--data-dir is for --kind apache: the embedded broker stores nothing on disk")
    if data_dir is not None:
        made_folder(data_dir, "--data-dir")
    stopped = threading.Event()

    def stop(_signal: int, _frame: object) -> None:
        stopped.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    options = {"port": port or None} | ({"data_dir": data_dir} if kind == "apache" else {})
    with start_broker(kind, **options) as broker:
        address = broker.kafka.bootstrap_servers
        if as_json:
            ready = {"kind": kind, "bootstrap_servers": address, "broker": broker.kafka.broker}
            click.echo(json.dumps(ready))
        else:
            click.echo(f"{kind} broker ready at {address}; Ctrl-C stops it. Use it from another terminal by")
            click.echo(
                f"  export HEADRACE_KAFKA__BOOTSTRAP_SERVERS={address} HEADRACE_KAFKA__BROKER={broker.kafka.broker}"
            )
        while not stopped.wait(0.5):
            reason = broker.why_ended()
            if reason is not None:
                raise BrokerError(reason)
    if not as_json:
        click.echo("stopped")


@command.command()
@click.option("--kind", type=click.Choice(("apache",)), default="apache", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fetch(*, kind: str, as_json: bool) -> None:
    """Fetch Apache Kafka's jars with Maven, if they are not here yet (some 45 MB, once), and check Java."""
    import json

    from headrace.infra.brokers.java import find_java
    from headrace.infra.brokers.kafka_jars import fetch_jars, jars_folder

    java = find_java()
    folder = jars_folder()
    if not folder.is_dir() and not as_json:
        click.echo(f"fetching Apache Kafka into {folder} ...")
    folder = fetch_jars()
    if as_json:
        click.echo(json.dumps({"kind": kind, "java": java, "jars": str(folder)}))
    else:
        click.echo(f"Apache Kafka {folder.name.split('-')[0]} is in {folder}, Java is {java}")
