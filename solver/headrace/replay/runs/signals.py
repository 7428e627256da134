"""A run from signals put together: the fold of a folder, here or in processes beside this one, and what is decided."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headrace.replay.core.history import Finding, HistoryError
from headrace.replay.core.play_signals import SignalsView, instants, play_signals
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.signals_fold import Seen
from headrace.replay.core.variant import Variant
from headrace.replay.runs.fold_processes import seen_apart
from headrace.replay.runs.folding import Folding, fold_signals, standing
from headrace.replay.runs.verification import recorded_of
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.codec import SchemaSource
from headrace.schemas.topics import STATE_OF
from headrace.schemas.weights import Snapshot
from headrace.solver.core.inputs.state_view import StateFold
from headrace.solver.glop import Glop
from headrace.streams.settings import StreamsSettings


def signals_played(
    folder: Path,
    variant: Variant,
    streams: StreamsSettings,
    registry: SchemaSource | None = None,
    *,
    findings: list[Finding] | None = None,
    processes: int = 0,
) -> Generator[PlayedTick]:
    """Play a variant over a folder's signals; what was found on the way goes into `findings` at the end.

    Args:
        folder: history.
        variant: what to play.
        streams: settings of the fold.
        registry: looks up schemas of Confluent framing.
        findings: where they go.
        processes: beside this one that fold, each some of the partitions; with 0 it is done here. The same result.

    Raises:
        HistoryError: the folder holds no signals, or a process that folds has come to an end before its time.
    """
    history = HistoryFolder(folder)
    if not any(history.places(role) for role in STATE_OF):
        raise HistoryError("the range holds no signals, so there is nothing to fold anew")
    view = SignalsView(StateFold(history.topics, registry))
    for role in STATE_OF:
        view.begin(role, standing(history, role, registry))
    ticks = instants(history.span, variant.settings.period_ms)
    folding, found = Folding(folder, streams, registry, ticks), list[Finding]()
    with _seen(folding, processes, found) as seen:
        dated = zip(ticks, seen, strict=False)
        yield from play_signals(variant, dated, view, _snapshot_before(history), Glop(threads=1))
        next(seen, None)  # what was found comes behind the last tick
    if findings is not None:
        findings += dict.fromkeys((*history.findings, *sorted(found, key=_where)))


@contextmanager
def _seen(folding: Folding, processes: int, found: list[Finding]) -> Generator[Iterator[Seen]]:
    """Give what is seen at each tick; what was found is in `found` when nothing more comes."""
    if processes:
        with seen_apart([replace(folding, part=(n, processes)) for n in range(processes)], found) as seen:
            yield seen
    else:
        yield fold_signals(folding, found)


def _where(finding: Finding) -> tuple[str, int, str, str]:
    return finding.topic, -1 if finding.partition is None else finding.partition, finding.found, finding.sentence


def _snapshot_before(history: HistoryFolder) -> Snapshot | None:
    for tick in recorded_of(history).ticks(history.span):
        return tick.previous
    return None
