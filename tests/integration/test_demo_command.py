"""`headrace demo` as people run it, on the embedded broker: what it says, and that nothing of it outlives it."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

HEADRACE = (sys.executable, "-c", "from headrace.infra.cli import main; main()")
SCRIPT = """
t=0s  phase warm-up
t=5s  phase surge
t=5s  surge cluster-b 1.15
t=9s  phase dead
t=9s  surge cluster-b 1
t=9s  kill engine-b
t=14s phase back
t=14s revive engine-b
t=18s phase shrunk
t=18s replicas engine-a 2
t=18s replicas engine-c 2
"""
ROUTED = "first request routed"
GONE_WITHIN_S = 10.0


@contextmanager
def demo(folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a demo in a session of its own; give it when its first request was routed."""
    with (folder / "err.txt").open("wb") as err, (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            (*HEADRACE, "demo", "--for", "60s", "--folder", str(folder / "demo"), *more),
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    try:
        wait_until(lambda: ROUTED in said(folder) or process.poll() is not None, 90.0)
        assert process.poll() is None, said(folder)
        yield process
    finally:
        process.kill()
        process.wait()


def said(folder: Path) -> str:
    return (folder / "err.txt").read_text("utf-8")


def wait_until(condition: object, limit_s: float) -> bool:
    """Wait for a condition; give whether it came true."""
    assert callable(condition)
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def children(pid: int) -> dict[int, str]:
    """Give the command line of every process below `pid`, by process id."""
    found: dict[int, str] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in (c for c, p in parents.items() if p == parent):
            found[child] = (Path("/proc") / str(child) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            waiting.append(child)
    return found


def running(pids: Iterator[int] | dict[int, str]) -> list[int]:
    """Give those that still run; a zombie, which only waits to be counted, does not."""
    left: list[int] = []
    for pid in pids:
        try:
            state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            left.append(pid)
    return left


def test_an_unattended_run_serves_or_refuses_every_request_and_says_how_quick_the_loop_was(tmp_path: Path) -> None:
    done = subprocess.run(
        (*HEADRACE, "demo", "--for", "25s", "--json", "--script", "-", "--seed", "3", "--folder", str(tmp_path)),
        input=SCRIPT.encode(),
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = json.loads(done.stdout)
    requests = found["requests"]
    # 250 RPS for 25 s, and 15 % of 120 RPS more for 4 s.
    assert requests["arrived"] == pytest.approx(250 * 25 + 18 * 4, rel=0.05)
    assert requests["unanswered"] == 0
    assert requests["routed_to_known_dead"] == 0
    unserved = sum(requests["refused"].values()) + sum(requests["failed"].values())
    assert requests["answered"] + unserved == requests["arrived"]
    assert "NO_SNAPSHOT" not in requests["refused"]
    assert set(found["latency_ms"]["phases"]) == {"warm-up", "surge", "dead", "back", "shrunk"}
    assert found["latency_ms"]["phases"]["warm-up"]["mean"] < 1500
    # Three engines, three routes and nine links, a record a second each, seen by three data planes.
    assert found["signal_to_weight_ms"]["count"] > 15 * 15 * 3
    assert 0 < found["signal_to_weight_ms"]["p50"] <= found["signal_to_weight_ms"]["p99"]
    assert all(count >= 20 for count in found["snapshots"]["installed"].values())
    assert len(found["snapshots"]["installed"]) == 3
    assert found["snapshots"]["statuses"]["OPTIMAL"] >= 20
    # 50 + 100 + 40 RPS are left for 250 from 18 s on.
    assert found["shed"]["max_rps"] > 30
    assert requests["refused"]["SHED"] > 0
    whats = [event["what"] for event in found["events"]]
    assert "engine-b killed; engine-b can serve 0 RPS now, 100 before" in whats
    assert any(what.startswith("engine-b comes back; engine-b can serve ") for what in whats)
    assert found["startup_s"]["first_routed_request_s"] > 0


def test_a_demo_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        below = children(process.pid)
        assert sum("streams --config" in line for line in below.values()) == 1
        assert sum("solver --config" in line for line in below.values()) == 1
        process.kill()
        process.wait()
        assert wait_until(lambda: not running(below), GONE_WITHIN_S), [below[pid] for pid in running(below)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_ends_with_its_summary_and_status_130_and_leaves_no_process_behind(
    tmp_path: Path, how: signal.Signals
) -> None:
    with demo(tmp_path) as process:
        below = children(process.pid)
        os.kill(process.pid, how)
        assert process.wait(20) == 130
        assert "requests:" in (tmp_path / "out.txt").read_text("utf-8")
        assert "stopped before its time" in said(tmp_path)
        assert wait_until(lambda: not running(below), 1.0), [below[pid] for pid in running(below)]


def test_in_a_terminal_ctrl_c_ends_as_the_key_for_it_does_with_the_summary_and_status_0(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        (*HEADRACE, "demo", "--folder", str(tmp_path)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = bytearray()

    def saw(word: bytes) -> bool:
        if select.select([ours], [], [], 0)[0]:
            with suppress(OSError):  # what a terminal says where the other side is closed
                shown.extend(os.read(ours, 65_536))
        return word in shown

    try:
        assert wait_until(lambda: saw(b"last decision"), 90.0), shown[-2000:]
        os.kill(process.pid, signal.SIGINT)
        assert wait_until(lambda: saw(b"traffic moved:"), 20.0), shown[-2000:]
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_demo_whose_worker_dies_says_which_with_the_end_of_its_log_and_sums_up_and_ends_all(tmp_path: Path) -> None:
    with demo(tmp_path, "--json") as process:
        below = children(process.pid)
        worker = next(pid for pid, line in below.items() if "streams --config" in line)
        os.kill(worker, signal.SIGKILL)
        assert process.wait(20) == 1
        assert "`headrace streams` ended with status -9" in said(tmp_path)
        assert "streams ready" in said(tmp_path)
        found = json.loads((tmp_path / "out.txt").read_bytes())
        assert found["worker_ended"] == "`headrace streams` ended with status -9"
        assert found["requests"]["unanswered"] == 0
        assert wait_until(lambda: not running(below), 1.0), [below[pid] for pid in running(below)]


def test_what_cannot_be_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    for arguments, status, words in (
        (("--scenario", "mars"), 2, "three-regions"),
        (("--for", "soon"), 2, "expected 90"),
        (("--for", "0s"), 2, "more than 0"),
        (("--script", str(tmp_path / "none")), 2, "No such file"),
    ):
        done = subprocess.run((*HEADRACE, "demo", "--json", *arguments), capture_output=True, check=False)
        assert done.returncode == status, arguments
        assert words in done.stderr.decode()
