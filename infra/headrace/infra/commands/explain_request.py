"""`headrace explain-request`: why a request went to this engine rather than another, in plain sentences."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.config import Config, config_options

if TYPE_CHECKING:
    from headrace.infra.gateway.core.decision_header import DecisionHeader
    from headrace.schemas.weights import RouteWeights, Snapshot


@click.command()
@click.option("--header", "header_text", metavar="VALUE", help="Value of the answer's x-headrace-decision header.")
@click.option("--key", help="Session key that the request was routed by.")
@click.option("--model", help="Model that the request asked for; needed with --key.")
@click.option("--cluster", help="Where the request entered; may be left out where only one cluster routes the model.")
@click.option("--class", "request_class", default="default", show_default=True, help="Request class.")
@click.option("--rather-than", metavar="ENGINE", help="Say why it did not go to this engine.")
@click.option(
    "--snapshot",
    "path",
    type=click.Path(path_type=Path),
    help="Snapshot file (JSON); default: the newest snapshot on the weights topic.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_options
def command(
    *,
    config: Config,
    header_text: str | None,
    key: str | None,
    model: str | None,
    cluster: str | None,
    request_class: str,
    rather_than: str | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """Say why a request went to this engine rather than another, and what would have to change.

    From a decision header, from a session key, or better from both. The weights explain the slot; the header also says
    what the gateway knew at that moment. Give the snapshot of the header's version: one that compaction has merged on
    the topic is only in files (`headrace solve`, `headrace tail --json`).

    Example: headrace explain-request --key session-1 --model llama-3.1-8b --cluster tokyo --rather-than engine-b
    """
    from headrace.infra.gateway.core.decision_header import parse_decision_header
    from headrace.infra.request_why.explanation import explain_header, explain_key

    if header_text is None and key is None:
        raise click.UsageError("give --header, --key, or both")
    if key is not None and model is None:
        raise click.UsageError("--key needs --model: the same key has a slot in every route")
    header = None if header_text is None else parse_decision_header(header_text)
    why, says = None, list[str]()
    if key is not None and model is not None:
        snapshot = _snapshot(config, path)
        weights = _route(snapshot, model, cluster, request_class)
        says += _other_version(header, weights, snapshot)
        why = explain_key(weights, key, config.dataplane, rather_than)
    if header is not None:
        says = [*explain_header(header, why, config.dataplane), *says]
    if why is not None:
        says += why.sentences
    if as_json:
        from headrace.schemas.plain import to_plain

        plain = {
            "header": None if header is None else to_plain(header),
            "by_weights": None if why is None else to_plain(why),
        }
        click.echo(orjson.dumps(plain | {"sentences": says}))
    else:
        click.echo("\n".join(says))


def _snapshot(config: Config, path: Path | None) -> "Snapshot":
    from headrace.infra.latest import read_latest
    from headrace.schemas.assembly import Assembled, SnapshotAssembler
    from headrace.schemas.errors import InvalidInputError
    from headrace.schemas.ids import COMMIT_KEY
    from headrace.schemas.snapshot_file import read_snapshot
    from headrace.schemas.topics import WEIGHTS, topic_table

    if path is not None:
        return read_snapshot(path)
    topic = topic_table(config.topics)[WEIGHTS].name
    latest = read_latest(config.kafka, topic)
    assembler, newest = SnapshotAssembler(), None
    # The commit last, as it was written: it names and proves the set.
    for record in sorted(latest.values(), key=lambda r: r.key == COMMIT_KEY):
        outcome = assembler.offer(record)
        newest = outcome.snapshot if isinstance(outcome, Assembled) else newest
    if newest is None:
        raise InvalidInputError("explain-request", (f"{topic} holds no whole snapshot; give --snapshot FILE",))
    return newest


def _route(snapshot: "Snapshot", model: str, cluster: str | None, request_class: str) -> "RouteWeights":
    from headrace.schemas.errors import InvalidInputError

    of_model = [r for r in snapshot.routes if r.model == model and r.request_class == request_class]
    found = [r for r in of_model if cluster in (None, r.cluster)]
    if len(found) == 1:
        return found[0]
    here = ", ".join(str(r.route) for r in snapshot.routes) or "no routes"
    wanted = f"{cluster or 'any cluster'}|{model}|{request_class}"
    fault = "not in the snapshot" if not found else "in several clusters; give --cluster"
    raise InvalidInputError("route", (f"{wanted} is {fault}, which has {here}",))


def _other_version(header: "DecisionHeader | None", weights: "RouteWeights", snapshot: "Snapshot") -> list[str]:
    if header is None or (header.epoch, header.version) in ((weights.epoch, weights.version), (None, None)):
        return []
    decided, here, commit = f"{header.epoch}.{header.version}", f"{weights.epoch}.{weights.version}", snapshot.commit
    return [f"Careful: decided by version {decided}; what follows is by {here}, of {commit.epoch}.{commit.version}."]
