"""Apache Kafka itself: one KRaft node as a child process, from jars that Maven resolves. Needs Java 17.

Compacts, expires, fences and rebalances as in production, so what must be true there is tested here. The data folder
is kept over restart() and kill(); a temporary one is removed by stop().
"""

import base64
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.infra.brokers.contract import BrokerError
from headrace.infra.brokers.java import find_java
from headrace.infra.brokers.kafka_jars import fetch_jars
from headrace.infra.brokers.ready import wait_until_ready
from headrace.infra.processes.child import ChildError, ChildProcess
from headrace.infra.processes.ports import LOOPBACK, free_ports, is_taken
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.made_folder import made_folder

READY_TIMEOUT_S = 90.0
FORMAT_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
HEAP = "-Xmx512m"

_LOG4J = """\
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}} %m%n
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.exit.name = org.apache.kafka.common.utils.Exit
logger.exit.level = info
"""


@dataclass(frozen=True, slots=True)
class Login:
    """One user who may connect by SASL/PLAIN; the broker itself logs in as them too."""

    username: str
    password: str


class ApacheBroker:
    """A single-node Kafka at a loopback port."""

    def __init__(self, port: int, data_dir: Path | None, login: Login | None, properties: Mapping[str, str]) -> None:
        self._port = port
        self._controller_port = next(free for free in free_ports(2) if free != port)
        self._keeps_data = data_dir is not None
        self._folder = data_dir
        self._login = login
        self._properties = properties
        self._child: ChildProcess | None = None

    @property
    def kafka(self) -> KafkaSettings:
        """How to reach it, with the login where it asks for one."""
        options: dict[str, str] = {}
        if self._login is not None:
            options = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": self._login.username,
                "sasl.password": self._login.password,
            }
        return KafkaSettings(bootstrap_servers=f"{LOOPBACK}:{self._port}", options=options)

    def start(self) -> None:
        """Start it and wait until it answers, formatting its data folder the first time.

        Raises:
            BrokerError: Java or Maven is missing, the port is taken, or Kafka ended; the message holds its log's end.
        """
        if is_taken(self._port):
            raise BrokerError(f"port {self._port} is taken; choose another with --port")
        java, jars = find_java(), fetch_jars()
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="headrace-kafka-"))
        made_folder(self._folder, "data_dir")
        config = self._write_config(self._folder)
        classpath = f"{jars}/*"
        if not (self._folder / "data" / "meta.properties").exists():
            _format(java, classpath, config)
        log4j = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        # The first compiler tier is enough for tests and halves the time to start on few cores.
        flags = (HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", log4j)
        self._child = ChildProcess(
            (java, *flags, "-cp", classpath, "kafka.Kafka", str(config)), self._folder / "out.log"
        )
        self._run(self._child)

    def stop(self) -> None:
        """Stop it in good order; a temporary data folder is removed."""
        if self._child is not None:
            self._child.stop(timeout_s=STOP_TIMEOUT_S)
            self._child = None
        if self._folder is not None and not self._keeps_data:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kill(self) -> None:
        """End it as a crash would; its data folder stays."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        """Stop it if it runs, and start it on the same data at the same port."""
        if self._child is None:
            self.start()
            return
        self._child.stop(timeout_s=STOP_TIMEOUT_S)
        self._run(self._child)

    def why_ended(self) -> str | None:
        """Say why it ended by itself; None while it runs, and once it was stopped."""
        return None if self._child is None else self._ended(self._child)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, child: ChildProcess) -> None:
        try:
            child.start()
            wait_until_ready(self.kafka, READY_TIMEOUT_S, lambda: self._ended(child))
        except (BrokerError, ChildError):
            child.stop(timeout_s=STOP_TIMEOUT_S)
            raise

    def _ended(self, child: ChildProcess) -> str | None:
        if child.pid is not None or self._folder is None:
            return None
        log = self._folder / "server.log"
        said = log.read_text("utf-8", "replace")[-2_000:] if log.exists() else ""
        return f"Kafka ended with status {child.exit_status}:\n{child.log_tail()}\n{said}".rstrip()

    def _write_config(self, folder: Path) -> Path:
        settings = server_properties(self._port, self._controller_port, folder / "data", self._login)
        settings.update(self._properties)
        config = folder / "server.properties"
        config.touch(mode=0o600)
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
        (folder / "log4j2.properties").write_text(_LOG4J.format(file=folder / "server.log"), "utf-8")
        return config


def create(
    port: int | None = None,
    data_dir: Path | None = None,
    login: Login | None = None,
    properties: Mapping[str, str] | None = None,
) -> ApacheBroker:
    """Give an Apache Kafka broker, not started yet.

    Args:
        port: where it listens; a free one where None.
        data_dir: what it stores, kept after stop(); a temporary folder where None.
        login: makes it ask for SASL/PLAIN.
        properties: more of Kafka's own server properties; they win.
    """
    return ApacheBroker(free_ports(1)[0] if port is None else port, data_dir, login, properties or {})


def server_properties(port: int, controller_port: int, data: Path, login: Login | None) -> dict[str, str]:
    """Give Kafka's server properties for a single node that is broker and controller at once."""
    protocol = "PLAINTEXT" if login is None else "SASL_PLAINTEXT"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"CLIENT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": f"CLIENT:{protocol},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": str(data),
        # A typo in a topic's name must be an error, not a topic with one partition.
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # After a kill the controller waits this long before it lets the same node register again.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
    }
    if login is not None:
        who = f'username="{login.username}" password="{login.password}" user_{login.username}="{login.password}"'
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": f"{plain} required {who};",
        }
    return settings


def _format(java: str, classpath: str, config: Path) -> None:
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(config))
    try:
        done = subprocess.run(  # noqa: S603 - the path was found by us
            (java, "-XX:TieredStopAtLevel=1", "-cp", classpath, *tool),
            capture_output=True,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BrokerError(f"Kafka could not format its data folder within {FORMAT_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        raise BrokerError(f"Kafka could not format its data folder:\n{(done.stdout + done.stderr)[-2_000:]}")
