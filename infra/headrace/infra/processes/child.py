"""A child process that never outlives its parent, however the parent dies.

    parent ──spawns──► child
       └──pipe───────► watcher: reads until the pipe closes, then kills the child

A closed pipe is seen on every POSIX system and after every kind of death, SIGKILL included. (Linux's parent-death
signal would fire when the *thread* that spawned the child ends, which is not what is meant.)
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from headrace.schemas.errors import HeadraceError

TAIL_BYTES = 4_000
_WATCH = 'read -r _; kill -TERM "$1" 2>/dev/null; sleep 2; kill -KILL "$1" 2>/dev/null'


class ChildError(HeadraceError):
    """A child could not be started, or ended before it was ready; the message holds the end of its log."""


class ChildProcess:
    """One process with its output in a file, or where its parent writes (`log` None).

    Start, stop, kill and start again; nothing happens in the constructor.
    """

    def __init__(self, argv: Sequence[str], log: Path | None, env: Mapping[str, str] | None = None) -> None:
        self._argv = tuple(argv)
        self._log = log
        self._env = dict(os.environ if env is None else env)
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """The file that holds what the process prints; the null device where that goes where the parent's goes."""
        return Path(os.devnull) if self._log is None else self._log

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def exit_status(self) -> int | None:
        """The status with which the last process ended; None while it runs and before the first start."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the process in a session of its own, so that a Ctrl-C in the terminal reaches the parent alone.

        Raises:
            ChildError: it runs already, or its program cannot be executed.
        """
        if self.pid is not None:
            raise ChildError(f"{self._argv[0]} runs already, as process {self.pid}")
        try:
            with self._output() as output:
                self._process = subprocess.Popen(  # noqa: S603 - our own command lines, no shell
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=None if output is None else subprocess.STDOUT,
                    env=self._env,
                    start_new_session=True,
                )
        except OSError as error:
            raise ChildError(f"cannot start {self._argv[0]}: {error}") from error
        self._watcher = subprocess.Popen(  # noqa: S603 - a constant script; the process id is its only argument
            ("/bin/sh", "-c", _WATCH, "watch", str(self._process.pid)), stdin=subprocess.PIPE, start_new_session=True
        )

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 15.0) -> int | None:
        """Ask the process to end and wait; kill it after `timeout_s`. Gives its exit status, None if none ever ran."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._ended(self._process)

    def kill(self) -> None:
        """End the process with SIGKILL, as a crash would, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._ended(self._process)

    def log_tail(self) -> str:
        """Give the end of the log, at most TAIL_BYTES of it; empty where there is none."""
        if self._log is None or not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace").strip()

    def _output(self) -> AbstractContextManager[IO[bytes] | None]:
        if self._log is None:
            return nullcontext()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        return self._log.open("ab")

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        status = process.wait()
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
            self._watcher = None
        return status
