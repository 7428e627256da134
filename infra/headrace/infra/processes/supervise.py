"""Several workers of one kind on one host: started together, watched, started again when one ends, stopped together.

    ended by itself -> wait 1 s, 2 s, 4 s ... at most 30 s -> started again       lived a minute: the wait is 1 s again
    ended MOST_IN_A_ROW times without a minute of life -> all are stopped, and the supervisor fails

A worker that is started again goes on where it was; one that cannot live is something a person must look at. The
children never outlive the supervisor (`headrace.infra.processes.child`).
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from headrace.schemas.errors import HeadraceError

LOOK_S = 0.2
FIRST_WAIT_S = 1.0
MOST_WAIT_S = 30.0
GROWN_UP_S = 60.0
MOST_IN_A_ROW = 10
STOP_S = 20.0


class SuperviseError(HeadraceError):
    """A worker could not be kept running."""


class Child(Protocol):
    """A process that can be started again; `headrace.infra.processes.child.ChildProcess` is one."""

    @property
    def exit_status(self) -> int | None:
        """Give how it ended; None while it runs."""
        ...

    def start(self) -> None:
        """Start it."""
        ...

    def stop(self, *, timeout_s: float) -> int | None:
        """Ask it to end, wait, and give its exit status."""
        ...


class Log(Protocol):
    """Where it is said what happens."""

    def info(self, event: str, **fields: object) -> object:
        """Log what happened."""
        ...

    def warning(self, event: str, **fields: object) -> object:
        """Log what someone should look at."""
        ...


@dataclass(slots=True)
class Life:
    """When a child was started last, how often it died young in a row, and when it is to be started again."""

    started_s: float
    died_young: int = 0
    again_at_s: float | None = None

    def died(self, now_s: float) -> float:
        """Note that it ended by itself, and give how long to wait before it is started again."""
        self.died_young = 1 if now_s - self.started_s >= GROWN_UP_S else self.died_young + 1
        wait_s = min(FIRST_WAIT_S * (1 << (self.died_young - 1)), MOST_WAIT_S)
        self.again_at_s = now_s + wait_s
        return wait_s


def supervise(
    children: Sequence[Child],
    log: Log,
    stopped: Callable[[], bool],
    now_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Keep the children running until `stopped` says so; then stop them all at once and give the worst exit status.

    Raises:
        SuperviseError: one died young MOST_IN_A_ROW times in a row; the others were stopped.
    """
    lives = [Life(now_s()) for _ in children]
    try:
        for child in children:
            child.start()
        while not stopped():
            for number, (child, life) in enumerate(zip(children, lives, strict=True), 1):
                _look_after(number, child, life, log, now_s())
            sleep(LOOK_S)
    finally:
        statuses = _stop(children)
    log.info("workers stopped", exit_statuses=statuses)
    return max((status if status >= 0 else 1 for status in statuses), default=0)


def _look_after(number: int, child: Child, life: Life, log: Log, now_s: float) -> None:
    status = child.exit_status
    if status is None:
        return
    if life.again_at_s is None:
        wait_s = life.died(now_s)
        if life.died_young >= MOST_IN_A_ROW:
            raise SuperviseError(
                f"worker {number} ended {life.died_young} times in a row within {GROWN_UP_S:g} s of its start, "
                f"the last time with status {status}; its log says why"
            )
        log.warning("worker ended, starting it again", worker=number, status=status, in_s=wait_s)
    elif now_s >= life.again_at_s:
        life.started_s, life.again_at_s = now_s, None
        child.start()


def _stop(children: Sequence[Child]) -> list[int]:
    """Ask all of them at once, each of them once: a second signal would end a worker without good order."""

    def stop(child: Child) -> int | None:
        return child.stop(timeout_s=STOP_S)

    running = [child for child in children if child.exit_status is None]
    with ThreadPoolExecutor(max_workers=max(1, len(running))) as pool:
        found = list(pool.map(stop, running))
    return [0 if status is None else status for status in found]
