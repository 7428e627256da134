"""Jobs in processes beside each other: what each has done so far is told, and a stop is asked for, not forced.

    jobs ──► at most `processes` at once ──► results, in the order of the jobs
      └── tell(n): n more done          └── asked(): whether to end early, with what there is

The result is the same for any number of processes: a job depends on its arguments alone. Processes are spawned, so a
job and its arguments must be picklable. A Ctrl-C in the terminal reaches every process of it; here only the first one
listens, and asks the others to stop.
"""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Generic, TypeVar

from headrace.solver.heap import seldom_collected

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

J = TypeVar("J")
R = TypeVar("R")

LOOK_S = 0.2
"""How often progress is looked for."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a job may say and ask while it runs."""

    tell: Callable[[int], None]
    asked: Callable[[], bool]


Work = Callable[[J, Desk], R]
_queue: "SimpleQueue[int] | None" = None
_stop: Event | None = None


class Pool(Generic[J, R]):
    """Runs jobs. `told` hears of progress; `asked` says whether to stop."""

    def __init__(self, work: Work[J, R], told: Callable[[int], None], asked: Callable[[], bool]) -> None:
        self._work = work
        self._told = told
        self._asked = asked

    def run(self, jobs: Sequence[J], processes: int) -> list[R]:
        """Give each job's result, in their order; those that were not begun when a stop was asked for are left out."""
        if processes <= 1 or len(jobs) <= 1:
            desk = Desk(self._told, self._asked)
            with seldom_collected():
                return [self._work(job, desk) for job in jobs if not self._asked()]
        context = multiprocessing.get_context("spawn")
        queue: SimpleQueue[int] = context.SimpleQueue()
        stop = context.Event()
        with ProcessPoolExecutor(min(processes, len(jobs)), context, _begin, (queue, stop)) as pool:
            running = [pool.submit(_run, self._work, job) for job in jobs]
            try:
                self._watch(running, queue, stop)
            except BaseException:
                stop.set()
                raise
            return [each.result() for each in running if not each.cancelled()]

    def _watch(self, running: "Sequence[Future[R]]", queue: "SimpleQueue[int]", stop: Event) -> None:
        left = set(running)
        while left:
            done, left = wait(left, LOOK_S, FIRST_COMPLETED)
            while not queue.empty():
                self._told(queue.get())
            if self._asked() and not stop.is_set():
                stop.set()
                left -= {each for each in left if each.cancel()}
            for each in done:
                if not each.cancelled() and each.exception() is not None:
                    stop.set()


def _begin(queue: "SimpleQueue[int]", stop: Event) -> None:
    """Set up a process of the pool: it hears of a Ctrl-C from the first process alone."""
    global _queue, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _queue, _stop = queue, stop


def _run(work: "Work[J, R]", job: J) -> R:
    if _queue is None or _stop is None:
        raise AssertionError("a process of the pool was not set up")
    with seldom_collected():
        return work(job, Desk(_queue.put, _stop.is_set))
