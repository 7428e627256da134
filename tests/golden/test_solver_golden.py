"""The same problem gives the same bytes: in another process, under another hash seed, and as they were checked in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.schemas.snapshot_file import parse_snapshot

GOLDEN = Path(__file__).with_name("solver_three_regions.json")


def solve(seed: str, out: Path, *options: str) -> dict[str, object]:
    headrace = str(Path(sys.executable).with_name("headrace"))
    run = subprocess.run(
        [headrace, "solve", "three-regions", "--json", "--snapshot-out", str(out), *options],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    document: dict[str, object] = json.loads(run.stdout)
    return document


def test_two_processes_with_unlike_hash_seeds_write_the_golden_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    solve("1", first)
    solve("4242", second)
    assert first.read_bytes() == second.read_bytes()
    if "HEADRACE_REGENERATE" in os.environ:
        GOLDEN.write_bytes(first.read_bytes())
    assert first.read_bytes() == GOLDEN.read_bytes()


def test_b_sends_20_by_network_alone_and_30_when_engines_count_and_that_is_quicker(tmp_path: Path) -> None:
    out = tmp_path / "s.json"

    def sent_to_c(*options: str) -> tuple[float, float]:
        score = solve("0", out, *options)["score"]
        assert isinstance(score, dict)
        assert (score["served_rps"], score["shed_rps"], score["overloaded_rps"]) == pytest.approx((250.0, 0.0, 0.0))
        b = parse_snapshot(out.read_bytes()).routes[1]
        return 120.0 * {t.engine_id: t.weight_ppm for t in b.targets}["engine-c"] / 1e6, score["end_to_end_ms"]

    network_only, network_only_ms = sent_to_c("--set", "solver.engine_cost=none")
    convex, convex_ms = sent_to_c("--set", "solver.load_spread=0")
    careful, careful_ms = sent_to_c()
    assert network_only == pytest.approx(20.0, abs=120e-6)
    assert convex == pytest.approx(30.5, abs=0.5)
    assert network_only_ms == pytest.approx(1047.4, abs=0.1)
    assert convex_ms == pytest.approx(1034.8, abs=0.1)
    assert careful == pytest.approx(29.1, abs=0.5)
    assert careful_ms == pytest.approx(1035.2, abs=0.1)
