"""Apache Kafka's jars: resolved once by Maven from `pom.xml` into a folder per version, then used from there.

    in a checkout     .headrace/kafka/<version>-<digest of the pom> under the project's root
    from a wheel      the same under $XDG_CACHE_HOME/headrace, else ~/.cache/headrace

The folder appears whole or not at all: Maven fills a temporary one beside it, which is then renamed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from headrace.infra.brokers.contract import BrokerError
from headrace.infra.brokers.java import find_maven

FETCH_TIMEOUT_S = 900.0

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[2]


def fetch_jars() -> Path:
    """Give the folder that holds the jars, fetching them where they are not here yet (some 45 MB, once).

    Raises:
        BrokerError: Maven is missing or failed; the message holds what it said.
    """
    folder = jars_folder()
    if folder.is_dir():
        return folder
    maven = find_maven()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as temporary:
        # Maven writes beside its pom, which may lie in a read-only installation: it works on a copy.
        pom = shutil.copy(pom_file(), Path(temporary) / "pom.xml")
        jars = Path(temporary) / "jars"
        _run((maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"))
        if not any(jars.glob("kafka_*.jar")):
            raise BrokerError(f"{maven} succeeded, and fetched no Kafka jar into {jars}")
        with suppress(OSError):  # another process was quicker: its folder is as good
            jars.rename(folder)
    return folder


def pom_file() -> Path:
    """Give the path of the pom: the checkout's `infra/kafka/pom.xml`, or the one packaged in the wheel.

    Raises:
        BrokerError: it is in neither place: the installation is broken.
    """
    candidates = (_CHECKOUT / "infra" / "kafka" / "pom.xml", _PACKAGE / "kafka" / "pom.xml")
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise BrokerError(
        f"kafka/pom.xml is missing: looked at {' and '.join(map(str, candidates))}; install headrace again"
    )


def jars_folder() -> Path:
    """Give the folder where the jars of this pom are, or will be. Another version or pom has another folder."""
    pom = pom_file()
    text = pom.read_bytes()
    match = re.search(rb"<kafka\.version>([\w.-]+)</kafka\.version>", text)
    if match is None:
        raise BrokerError(f"{pom} names no kafka.version")
    name = f"{match.group(1).decode()}-{hashlib.sha256(text).hexdigest()[:8]}"
    if pom.is_relative_to(_PACKAGE):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    else:
        cache = _CHECKOUT / ".headrace"
    return cache / "kafka" / name


def _run(argv: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the path was found by us
            argv, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerError(f"Maven could not fetch Kafka's jars: {error}") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-2_000:]
        raise BrokerError(f"Maven could not fetch Kafka's jars (status {done.returncode}):\n{said}")
