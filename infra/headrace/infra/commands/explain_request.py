"""`headrace explain-request`: why a request went to this engine rather than another, in plain sentences."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headrace.infra.configuration.config import Config, config_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.infra.gateway.core.decision_header import DecisionHeader
    from headrace.infra.request_why.by_header import Asked
    from headrace.infra.request_why.explanation import Why
    from headrace.schemas.weights import RouteWeights, Snapshot

ANSWER_S = 5.0
LOOK_S = 1.5
"""How long a broker is waited for that nobody asked for."""


@click.command()
@click.option("--header", "header_text", metavar="VALUE", help="Value of the answer's x-headrace-decision header.")
@click.option("--key", help="Session key that the request was routed by: the value of its x-session-id header.")
@click.option("--model", help="Model that the request asked for; may be left out where there is one.")
@click.option("--cluster", help="Where the request entered; may be left out where only one cluster routes the model.")
@click.option("--class", "request_class", help="Request class. [default: default with --key, else any]")
@click.option("--rather-than", metavar="ENGINE", help="Say why it did not go to this engine.")
@click.option(
    "--snapshot",
    "path",
    type=click.Path(path_type=Path),
    help="Snapshot file (JSON); default: the header's version on the weights topic, else the newest there.",
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
    request_class: str | None,
    rather_than: str | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """Say why a request went to this engine rather than another, and what would have to change.

    From a decision header, from a session key, or best from both: the header says what the gateway decided and by which
    version, the weights of that version why its engine has its weight, the key which slot the session has and what
    weight would move it. The weights are a file's (`headrace gateway --demo-engines 3 --snapshot-out FILE`, `headrace
    solve --snapshot-out FILE`), else the topic's.

    \b
    headrace explain-request --header 'version="3.41", engine="engine-b", outcome=ROUTED, reason=SLOT, attempt=1'
    headrace explain-request --key session-1 --model llama-3.1-8b --cluster tokyo --rather-than engine-b
    """  # noqa: D301 - \b is click's mark for a paragraph to leave as it is
    from headrace.infra.gateway.core.decision_header import parse_decision_header
    from headrace.infra.request_why.by_header import Asked

    if header_text is None and key is None:
        raise click.UsageError("give --header, --key, or both")
    if key == "":
        raise click.UsageError("--key is empty; a request without a key is spread by the weights")
    header = None if header_text is None else parse_decision_header(header_text)
    asked = Asked(model, cluster, request_class, rather_than)
    answer = _by_header(config, header, asked, path) if key is None else _by_key(config, key, header, asked, path)
    if as_json:
        from headrace.schemas.plain import to_plain

        plain = {
            "header": None if header is None else to_plain(header),
            "by_weights": None if answer.why is None else to_plain(answer.why),
        }
        click.echo(orjson.dumps(plain | {"sentences": answer.says}))
    else:
        click.echo("\n".join(answer.says))


@dataclass(frozen=True, slots=True)
class _Answer:
    says: "Sequence[str]"
    why: "Why | None" = None


def _by_header(config: Config, header: "DecisionHeader | None", asked: "Asked", path: Path | None) -> _Answer:
    """Say what a header says with the weights; without, where nobody asked for what only they can say."""
    from headrace.infra.request_why.by_header import explain_by_header
    from headrace.infra.request_why.explanation import explain_header
    from headrace.schemas.errors import HeadraceError

    if header is None:
        raise AssertionError("a header or a key is given")
    says = explain_header(header, None, config.dataplane)
    wants_weights = path is not None or asked != type(asked)()
    try:
        snapshot = _snapshot(config, path, header, ANSWER_S if wants_weights else LOOK_S)
    except HeadraceError as error:
        if wants_weights:
            raise
        return _Answer(
            (*says, f"The weights would say more, and are not at hand: {error}; --snapshot FILE gives some.")
        )
    alias = _aliases(config)
    asked = replace(asked, rather_than=_engine_named(snapshot, asked.rather_than, alias))
    return _Answer((*says, *explain_by_header(header, snapshot, asked, alias)))


def _by_key(config: Config, key: str, header: "DecisionHeader | None", asked: "Asked", path: Path | None) -> _Answer:
    from headrace.infra.gateway.core.session_key import MAX_KEY_CHARS
    from headrace.infra.request_why.explanation import explain_header, explain_key

    snapshot, alias = _snapshot(config, path, header), _aliases(config)
    weights = _route(snapshot, replace(asked, request_class=asked.request_class or "default"))
    rather_than = _engine_named(snapshot, asked.rather_than, alias)
    why = explain_key(weights, key[:MAX_KEY_CHARS], config.dataplane, rather_than)
    first = () if header is None else explain_header(header, why, config.dataplane, alias)
    # The header's reason in words is the first of them: once is enough where both agree.
    more = [sentence for sentence in why.sentences if not any(said.endswith(sentence) for said in first)]
    return _Answer((*first, *_other_version(header, weights, snapshot), *more), why)


def _aliases(config: Config) -> "Callable[[str], str]":
    """Give the function that says under which name an engine goes in headers."""
    from headrace.infra.gateway.core.decision_header import engine_alias

    configured = {name: access.alias for name, access in config.gateway.engines.items()}
    return lambda engine_id: engine_alias(engine_id, configured.get(engine_id))


def _engine_named(snapshot: "Snapshot", name: str | None, alias: "Callable[[str], str]") -> str | None:
    """Give the id of the engine that goes by a name; the name itself where none does."""
    known = {e.engine_id for route in snapshot.routes for some in (route.targets, route.excluded) for e in some}
    if name is None or name in known:
        return name
    return next((engine_id for engine_id in sorted(known) if alias(engine_id) == name), name)


def _snapshot(
    config: Config, path: Path | None, header: "DecisionHeader | None", answer_s: float = ANSWER_S
) -> "Snapshot":
    """Give the file's; else the first on the topic with a route of the header's version, or the newest."""
    from headrace.infra.topic_readers.held_snapshots import fold_snapshots
    from headrace.schemas.errors import InvalidInputError
    from headrace.schemas.snapshot_file import read_snapshot
    from headrace.schemas.topics import WEIGHTS, topic_table

    if path is not None:
        return read_snapshot(path)
    topic, decided_by = topic_table(config.topics)[WEIGHTS].name, list["Snapshot"]()

    def look(snapshot: "Snapshot") -> None:
        if header is not None and not decided_by:
            wanted = (header.epoch, header.version)
            decided_by.extend([snapshot] if any((r.epoch, r.version) == wanted for r in snapshot.routes) else [])

    newest = fold_snapshots(config.kafka, topic, look, answer_s=answer_s)
    if newest is None:
        raise InvalidInputError("explain-request", (f"{topic} holds no whole snapshot; give --snapshot FILE",))
    return decided_by[0] if decided_by else newest


def _route(snapshot: "Snapshot", asked: "Asked") -> "RouteWeights":
    from headrace.schemas.errors import InvalidInputError

    found = [route for route in snapshot.routes if asked.takes(route)]
    if len(found) == 1:
        return found[0]
    here = ", ".join(str(r.route) for r in snapshot.routes[:20]) or "no routes"
    wanted = f"{asked.cluster or 'any cluster'}|{asked.model or 'any model'}|{asked.request_class}"
    if found:
        raise InvalidInputError("route", (f"{wanted} is several routes; give --model and --cluster: {here}",))
    raise InvalidInputError("route", (f"{wanted} is not in the snapshot, which has {here}",))


def _other_version(header: "DecisionHeader | None", weights: "RouteWeights", snapshot: "Snapshot") -> list[str]:
    if header is None or (header.epoch, header.version) in ((weights.epoch, weights.version), (None, None)):
        return []
    decided, here, commit = f"{header.epoch}.{header.version}", f"{weights.epoch}.{weights.version}", snapshot.commit
    return [f"Careful: decided by version {decided}; what follows is by {here}, of {commit.epoch}.{commit.version}."]
