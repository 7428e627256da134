"""What the worker's loop needs from outside, so that a test can drive it with a clock, topics and a pen of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from headrace.schemas.bus.transactions import Committed, Failed, Fenced
from headrace.schemas.log import Log
from headrace.schemas.metric_table import Counts, NoCounts
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.answer.last_commit import Sent
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import Tick
from headrace.solver.leadership import Leadership
from headrace.solver.pen import NoPen, Pen
from headrace.solver.publish import Unsound


class Inputs(Protocol):
    """The input topics: `headrace.schemas.bus.compacted.CompactedReader`."""

    @property
    def caught_up(self) -> bool:
        """Whether the end of every partition has been reached once."""
        ...

    def poll(self, timeout_s: float) -> list[RawRecord]:
        """Give the next records as soon as there are any."""
        ...

    def positions(self) -> tuple[InputOffsets, ...]:
        """Give the next offset of each partition."""
        ...

    def close(self) -> None:
        """Let the client go."""
        ...


class Writer(Protocol):
    """The weights and decisions topics: `headrace.solver.publish.SnapshotWriter`."""

    def take_pen(self, stopped: Callable[[], bool], sent: Sent | None = None) -> Pen | NoPen | Fenced:
        """Fence older writers, then read the topic to its end; Fenced where a younger one has gone beyond `sent`."""
        ...

    def write(self, tick: Tick) -> Committed | Fenced | Failed | Unsound:
        """Publish a tick's snapshot as one."""
        ...

    def stray(self) -> str | None:
        """Name a record of the weights topic that no holder of the pen has written, or None."""
        ...

    def close(self) -> None:
        """Let the pen go."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside the loop.

    Attributes:
        inputs: the input topics.
        leadership: whether this worker leads.
        writer: the topics it writes.
        lp: the linear solver.
        log: where it says what it does.
        now_ms: the wall clock, ms since the epoch; ticks lie on whole periods of it.
        missing: says which of broker and topics is not there, or None; may wait for a second.
        elapsed_us: a stop watch for the record's timings; no decision depends on it.
        counts: what it counts of itself; `headrace.solver.metrics.TABLE` names all of it.
    """

    inputs: Inputs
    leadership: Leadership
    writer: Writer
    lp: LinearSolver
    log: Log
    now_ms: Callable[[], int]
    elapsed_us: Callable[[], int]
    missing: Callable[[], str | None]
    counts: Counts = field(default_factory=NoCounts)
