"""The demo's child processes: `headrace streams` and `headrace solver`, with their logs, and no life after the demo."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson

from headrace.infra.configuration.config import Config
from headrace.infra.configuration.text import to_toml
from headrace.infra.processes.child import ChildProcess
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError

NAMES = ("streams", "solver")
STOP_TIMEOUT_S = 5.0
TAIL_LINES = 12
COMPLAINTS = ("warning", "error", "critical")
UNTOLD = ("event", "level", "time", "exception", "logger")
_RUN = "from headrace.infra.cli import main; main()"


class WorkerEndedError(HeadraceError):
    """A worker ended while it was needed; the message holds the end of its log."""


class Workers:
    """The two workers, configured by one file in the demo's folder."""

    def __init__(self, config: Config, kafka: KafkaSettings, folder: Path) -> None:
        self._config = replace(
            config, kafka=kafka, streams=replace(config.streams, data_dir=str(folder / "streams-data"))
        )
        self._file = folder / "headrace.toml"
        # Only the file speaks: a variable of the caller's that the demo has overridden must not come back.
        env = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
        self._children = {
            name: ChildProcess(
                (sys.executable, "-c", _RUN, name, "--config", str(self._file)), folder / f"{name}.log", env
            )
            for name in NAMES
        }

    @property
    def logs(self) -> dict[str, Path]:
        """The file that each worker prints to."""
        return {name: child.log for name, child in self._children.items()}

    def start(self) -> None:
        """Write the configuration and start both; does not wait until they are ready."""
        self._file.write_text(to_toml(self._config, {}), "utf-8")
        for child in self._children.values():
            child.log.unlink(missing_ok=True)
            child.start()

    def check(self) -> None:
        """See that both are running.

        Raises:
            WorkerEndedError: one has ended.
        """
        for name, child in self._children.items():
            if child.pid is None:
                tail = "\n".join(f"  {line}" for line in child.log_tail().splitlines()[-TAIL_LINES:])
                raise WorkerEndedError(
                    f"`headrace {name}` ended with status {child.exit_status}; the end of {child.log}:\n{tail}"
                )

    def last_complaints(self) -> str:
        """Give the last warning or error of each log that has one, for a sentence; empty where none has."""
        found = {name: last_complaint(child.log_tail()) for name, child in self._children.items()}
        return "; ".join(f"{name} says: {words}" for name, words in found.items() if words is not None)

    def stop(self) -> None:
        """End both at the same time, whatever happens to one of them."""
        with ThreadPoolExecutor(len(self._children), thread_name_prefix="stop") as pool:
            for child in self._children.values():
                pool.submit(child.stop, timeout_s=STOP_TIMEOUT_S)


def last_complaint(log: str) -> str | None:
    """Give the last warning or error of a log's end, with its fields; None where there is none.

    What is no line of the log was printed by a command that could not start: `headrace: ...`.
    """
    for line in reversed(log.splitlines()):
        if line.startswith("headrace: "):
            return line.removeprefix("headrace: ")
        try:
            found: object = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(found, dict):
            fields = cast("dict[str, object]", found)
            if fields.get("level") in COMPLAINTS:
                more = [f"{name} {value}" for name, value in fields.items() if name not in UNTOLD]
                return ", ".join([str(fields.get("event")), *more])
    return None
