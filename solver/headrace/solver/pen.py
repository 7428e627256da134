"""The pen: the right to write a topic of snapshots, and what is read of the topic before and after it is taken.

    lost by a failure ──► look_for_younger(): read to the end; a younger one's commit? ── yes ──► Fenced
                                 │ no
    made leader ─────────────────┴──► init() ──► read_history() ──► Pen

init() takes the pen from whoever holds it. That is meant where a worker was just started, or just made leader by the
group. It is not where the pen was lost to something that failed, such as a commit that timed out: a younger writer may
have been the reason, and init() would fence it. So the topic is read first.

Failure mode: a younger writer that has committed nothing yet is not known of, and is fenced. It then ends, or finds an
epoch above its own: the two never fence each other in turns.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.transactions import Fenced
from headrace.schemas.weights import Snapshot
from headrace.solver.core.answer.last_commit import LastCommit, Sent
from headrace.solver.core.answer.weights_history import WeightsHistory

READ_SLICE_S = 0.2
MAX_SILENT_POLLS = 25
"""A topic of which nothing came for so many slices, and not its end, cannot be read now."""


@dataclass(frozen=True, slots=True)
class Pen:
    """The right to write: which epoch, after which version, and the last good snapshot of the writers before."""

    epoch: int
    version: int
    previous: Snapshot | None


@dataclass(frozen=True, slots=True)
class NoPen:
    """The pen could not be taken now; try again."""

    reason: str


def read_history(reader: CompactedReader, stopped: Callable[[], bool]) -> WeightsHistory | NoPen:
    """Read the weights topic to its end."""
    history = WeightsHistory()
    while not reader.caught_up:
        if stopped():
            return NoPen("stopped while reading the weights topic")
        for record in reader.poll(READ_SLICE_S):
            history.offer(record)
    return history


def look_for_younger(reader: CompactedReader, sent: Sent, stopped: Callable[[], bool]) -> Fenced | NoPen | None:
    """Read a topic to its end: Fenced where a younger writer has written, None where none has. Closes the reader.

    Gives NoPen where the topic cannot be read to its end: then nobody knows, and the pen is not to be taken.
    """
    last = LastCommit()
    silent = 0
    try:
        while not reader.caught_up:
            if stopped():
                return NoPen("stopped while looking for a younger solver's snapshots")
            if silent >= MAX_SILENT_POLLS:
                return NoPen("it cannot be read whether a younger solver has written")
            records = reader.poll(READ_SLICE_S)
            silent = 0 if records else silent + 1
            for record in records:
                last.offer(record)
    finally:
        reader.close()
    beyond = last.beyond(sent)
    return None if beyond is None else Fenced(beyond)
