"""What can be known of brokers without starting one: messages, versions, properties, folders, child processes."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.infra.brokers import broker_kinds, java, kafka_jars, start_broker
from headrace.infra.brokers.apache import Login, server_properties
from headrace.infra.brokers.contract import BrokerError
from headrace.infra.processes.child import ChildError, ChildProcess
from headrace.schemas.errors import InvalidInputError


def fake(folder: Path, name: str, says: str) -> Path:
    program = folder / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return program


def test_the_kinds_are_the_files_of_the_folder() -> None:
    assert broker_kinds() == ("apache", "embedded", "external")


def test_an_unknown_kind_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match="kind is 'docker'; kinds are apache, embedded, external"):
        start_broker("docker")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_version_is_read_from_what_java_says(said: str, version: int | None) -> None:
    assert java.java_version(said) == version


def test_without_java_it_is_said_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        BrokerError, match=r"needs Java 17 or later, and no `java` is on PATH(.|\n)*apt-get install openjdk"
    ):
        java.find_java()


def test_an_old_java_is_named_with_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerError, match=f"{program} says .*11.0.2"):
        java.find_java()


def test_javas_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, "java", "echo 'openjdk version \"17.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find_java() == str(program)


@pytest.fixture
def no_jars_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pom = tmp_path / "infra" / "kafka" / "pom.xml"
    pom.parent.mkdir(parents=True)
    pom.write_text("<kafka.version>9.9.9</kafka.version>")
    monkeypatch.setattr(kafka_jars, "_CHECKOUT", tmp_path)
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    return tmp_path


def test_without_maven_it_is_said_how_to_get_it(no_jars_yet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BrokerError, match=r"no `mvn` is on PATH(.|\n)*apt-get install maven"):
        kafka_jars.fetch_jars()
    assert not (no_jars_yet / ".headrace").exists()


def test_jars_are_fetched_once_into_a_folder_of_their_version(
    no_jars_yet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        no_jars_yet / "maven",
        "mvn",
        'for a; do out="${a#-DoutputDirectory=}"; done; mkdir -p "$out"; >"$out/kafka_1.jar"',
    )
    monkeypatch.setenv("MAVEN_HOME", str(no_jars_yet / "maven"))
    folder = kafka_jars.fetch_jars()
    assert folder.parent == no_jars_yet / ".headrace" / "kafka"
    assert folder.name.startswith("9.9.9-")
    assert [jar.name for jar in folder.iterdir()] == ["kafka_1.jar"]
    monkeypatch.setenv("MAVEN_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    assert kafka_jars.fetch_jars() == folder


def test_mavens_failure_is_told_in_its_own_words_and_leaves_nothing(
    no_jars_yet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(no_jars_yet / "maven", "mvn", "echo 'no route to the repository'; exit 3")
    monkeypatch.setenv("MAVEN_HOME", str(no_jars_yet / "maven"))
    with pytest.raises(BrokerError, match=r"status 3\):\nno route to the repository"):
        kafka_jars.fetch_jars()
    assert list((no_jars_yet / ".headrace" / "kafka").iterdir()) == []


def test_a_wheels_jars_go_to_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pom = tmp_path / "package" / "kafka" / "pom.xml"
    pom.parent.mkdir(parents=True)
    pom.write_text("<kafka.version>9.9.9</kafka.version>")
    monkeypatch.setattr(kafka_jars, "_CHECKOUT", tmp_path / "nowhere")
    monkeypatch.setattr(kafka_jars, "_PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kafka_jars.jars_folder().parent == tmp_path / "cache" / "headrace" / "kafka"


def test_kafka_listens_on_the_loopback_address_only_and_makes_no_topic_by_itself() -> None:
    settings = server_properties(9092, 9093, Path("/data"), None)
    assert settings["listeners"] == "CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert settings["auto.create.topics.enable"] == "false"
    assert settings["listener.security.protocol.map"] == "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_a_login_makes_kafka_ask_for_it() -> None:
    settings = server_properties(9092, 9093, Path("/data"), Login("ann", "hush"))
    assert settings["listener.security.protocol.map"] == "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert 'user_ann="hush"' in settings["listener.name.client.plain.sasl.jaas.config"]


def test_a_child_is_stopped_and_started_again_and_its_output_is_kept(tmp_path: Path) -> None:
    child = ChildProcess(
        (sys.executable, "-c", "print('hello', flush=True); import time; time.sleep(60)"), tmp_path / "log"
    )
    assert child.exit_status is None
    for starts in (1, 2):
        child.start()
        with pytest.raises(ChildError, match="runs already"):
            child.start()
        deadline = time.monotonic() + 30
        while child.log_tail().count("hello") < starts:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert child.stop(signal.SIGTERM) == -signal.SIGTERM
        assert child.pid is None
    assert child.log_tail() == "hello\nhello"


def test_a_child_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    child = ChildProcess((sys.executable, "-c", code), tmp_path / "log")
    child.start()
    deadline = time.monotonic() + 30
    while "deaf" not in child.log_tail():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert child.stop(timeout_s=0.1) == -signal.SIGKILL


def test_a_program_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match="cannot start /nowhere/kafka"):
        ChildProcess(("/nowhere/kafka",), tmp_path / "log").start()


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom headrace.infra.processes.child import ChildProcess\n"
        "child = ChildProcess((sys.executable, '-c', 'import time; time.sleep(60)'), Path(sys.argv[1]))\n"
        "child.start(); print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code, str(tmp_path / "log")), stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 30
    while alive(pid):
        assert time.monotonic() < deadline, f"{pid} is still alive"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    said = subprocess.run(("ps", "-o", "stat=", "-p", str(pid)), capture_output=True, text=True, check=False).stdout
    return bool(said.strip()) and not said.strip().startswith("Z")
