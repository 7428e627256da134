"""Folds in processes of their own, each of some of the partitions; whoever decides puts together what they see.

    part 0 ──► at most AHEAD ticks ──► pipe ──┐
    part 1 ──► at most AHEAD ticks ──► pipe ──┴──► a tick of all of them ──► decide, score

A state is a fold over its own key's signals alone, so the parts are independent, and the result is the same for any
number of them. A part that is ahead waits; one whose reader has gone ends. One that ends early is told by name: what
it was to fold is missing, and nothing is decided without it. Only the first process listens to a Ctrl-C.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import Queue

from headrace.replay.core.history import Finding, HistoryError
from headrace.replay.core.signals_fold import Seen, put_together
from headrace.replay.runs.folding import Folding, fold_signals
from headrace.solver.heap import seldom_collected

AHEAD = 8
"""Ticks that a part is ahead of the deciding, at most, beside what its pipe holds."""
PATIENCE_S = 10.0
"""How long a part whose reader has gone may take to end."""


@dataclass(frozen=True, slots=True)
class _Done:
    """The last word of a part."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Failed:
    """The last word of a part that could not go on."""

    error: Exception


_Said = Seen | _Done | _Failed


@contextmanager
def seen_apart(parts: Sequence[Folding], found: list[Finding]) -> Generator[Iterator[Seen]]:
    """Fold parts in a process each; gives what all of them see at each tick. `found` is filled at the end.

    Raises:
        HistoryError: a process ended before it had told of every tick; whatever a part raised, as it raised it.
    """
    context = multiprocessing.get_context("spawn")
    running: list[tuple[SpawnProcess, Connection]] = []
    try:
        for part in parts:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_fold, args=(part, theirs), daemon=True)
            running.append((process, ours))
            process.start()
            theirs.close()  # or its end would never be seen
        yield _together(running, found)
    finally:
        for _, ours in running:
            ours.close()
        for process, _ in running:
            if process.pid is not None:
                process.join(PATIENCE_S)
                process.kill()
                process.join()


def _together(running: Sequence[tuple[SpawnProcess, Connection]], found: list[Finding]) -> Iterator[Seen]:
    while True:
        said = [_next(process, ours) for process, ours in running]
        seen = [each for each in said if isinstance(each, Seen)]
        if len(seen) < len(said):
            found += (finding for each in said if isinstance(each, _Done) for finding in each.findings)
            return
        yield put_together(seen)


def _next(process: SpawnProcess, ours: Connection) -> Seen | _Done:
    try:
        said: _Said = pickle.loads(ours.recv_bytes())  # noqa: S301 - of our own process
    except (EOFError, OSError):
        process.join(PATIENCE_S)
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with {code}"
        raise HistoryError(
            f"a process that folds signals {how} before the range's end; if memory was short, --processes 1 takes least"
        ) from None
    if isinstance(said, _Failed):
        raise said.error
    return said


def _fold(part: Folding, theirs: Connection) -> None:
    """Fold one part and send it; what is run in its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting: Queue[_Said] = Queue(AHEAD)
    sender = threading.Thread(target=_send, args=(waiting, theirs))
    sender.start()
    found: list[Finding] = []
    try:
        with seldom_collected():
            for seen in fold_signals(part, found):
                waiting.put(seen)
        waiting.put(_Done(tuple(found)))
    except Exception as error:  # noqa: BLE001 - it is raised where it is read
        error.add_note(traceback.format_exc())
        waiting.put(_Failed(error))
    sender.join()


def _send(waiting: "Queue[_Said]", theirs: Connection) -> None:
    while True:
        said = waiting.get()
        try:
            theirs.send_bytes(pickle.dumps(said, pickle.HIGHEST_PROTOCOL))
        except BrokenPipeError:
            os._exit(0)  # nobody reads any more: nothing here is worth an orderly end
        if not isinstance(said, Seen):
            return
