"""Finds Java 17 and Maven, or says how to get them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from headrace.infra.brokers.contract import BrokerError

MIN_JAVA = 17
TIMEOUT_S = 30.0

_GET_JAVA = """\
  Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless
  Fedora:         sudo dnf install java-17-openjdk-headless
  macOS:          brew install openjdk@17
  elsewhere:      https://adoptium.net
or use the embedded broker, which needs no Java: --kind embedded"""
_GET_MAVEN = """\
  Debian, Ubuntu: sudo apt-get install maven
  Fedora:         sudo dnf install maven
  macOS:          brew install maven
  elsewhere:      https://maven.apache.org/install.html
or use the embedded broker, which needs no Maven: --kind embedded"""


def find_java() -> str:
    """Give the path of a `java` of version 17 or later: JAVA_HOME's, else the one on PATH.

    Raises:
        BrokerError: there is none, or it is too old; the message says how to get one.
    """
    java = _executable("JAVA_HOME", "java")
    if java is None:
        raise BrokerError(
            f"Apache Kafka needs Java {MIN_JAVA} or later, and no `java` is on PATH. Get one:\n{_GET_JAVA}"
        )
    said = _output((java, "-version"))
    version = java_version(said)
    if version is None or version < MIN_JAVA:
        found = said.splitlines()[0] if said else "nothing"
        raise BrokerError(f"Apache Kafka needs Java {MIN_JAVA} or later; {java} says {found!r}. Get one:\n{_GET_JAVA}")
    return java


def find_maven() -> str:
    """Give the path of `mvn`: MAVEN_HOME's, else the one on PATH.

    Raises:
        BrokerError: there is none; the message says how to get it.
    """
    maven = _executable("MAVEN_HOME", "mvn")
    if maven is None:
        raise BrokerError(f"Kafka's jars are fetched by Maven, and no `mvn` is on PATH. Get it:\n{_GET_MAVEN}")
    return maven


def java_version(said: str) -> int | None:
    """Read the major version from what `java -version` prints: 17 from `"17.0.15"`, 8 from `"1.8.0_292"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return None if match is None else int(match.group(1))


def _executable(home_variable: str, name: str) -> str | None:
    home = os.environ.get(home_variable)
    if home:
        candidate = Path(home) / "bin" / name
        if os.access(candidate, os.X_OK):
            return str(candidate)
    return shutil.which(name)


def _output(argv: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the path was found by us
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr + done.stdout).strip()
