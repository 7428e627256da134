"""The wheel as a gateway installs it: base dependencies only, and a request routed from a snapshot file."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from dataplane_inputs import route_weights, shares, snapshot
from headrace.schemas.snapshot_file import write_snapshot

ROOT = Path(__file__).parents[2]

ROUTE_FROM_A_FILE = """
import pathlib, sys
from headrace.dataplane import Decision, Outcome, Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.snapshot_file import read_snapshot

snapshot = read_snapshot(pathlib.Path(sys.argv[1]))
router = Router(DataPlaneSettings(), "A")
router.apply(snapshot)
decision = router.route("m", key="session-1", now_ms=snapshot.commit.tick_ms)
assert decision.outcome is Outcome.ROUTED, decision
heavy = {"faust", "ortools", "confluent_kafka", "aiokafka", "scipy", "pydantic", "click"}
print(decision.engine_id, sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a clean environment in which the built wheel is installed, without any extra."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("headrace-*.whl")
    venv.create(folder / "venv", with_pip=True)
    interpreter = folder / "venv/bin/python"
    run(str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    return interpreter


@pytest.fixture(scope="module")
def snapshot_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshot") / "weights.json"
    write_snapshot(path, snapshot(route_weights(shares(a=3, b=1))))
    return path


def run(*command: str) -> str:
    """Run from the root directory, so that nothing is found in the working tree by chance."""
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.wheel
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_data_plane_routes_from_the_base_wheel_and_loads_nothing_heavy(python: Path, snapshot_file: Path) -> None:
    engine, loaded = run(str(python), "-c", ROUTE_FROM_A_FILE, str(snapshot_file)).split(maxsplit=1)
    assert engine in ("a", "b")
    assert loaded.strip() == "[]"


@pytest.mark.wheel
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_command_of_the_base_wheel_routes_without_any_extra(python: Path, snapshot_file: Path) -> None:
    headrace = str(python.with_name("headrace"))
    out = run(headrace, "route", "--snapshot", str(snapshot_file), "--model", "m", "--key", "session-1")
    assert out.startswith(("a at http://a:8000", "b at http://b:8000"))
    for extra in ("faust", "ortools"):
        missing = subprocess.run([str(python), "-c", f"import {extra}"], capture_output=True, check=False)
        assert missing.returncode == 1
