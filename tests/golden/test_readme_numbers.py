"""The README's table is what the command prints: a number that nobody can reproduce is worse than none."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
ROW = r"\| {} \| ([\d.]+) RPS \| ([\d.]+) RPS \| \**([\d.]+) ms\** \|"


@pytest.mark.parametrize(
    ("row", "options"),
    [
        ("network only", ("--set", "solver.engine_cost=none")),
        (re.escape("network + convex engine latency"), ("--set", "solver.load_spread=0")),
        (re.escape("the same, of a load that swings (`load_spread`)"), ()),
    ],
)
def test_the_readmes_three_regions_are_what_the_command_prints(row: str, options: tuple[str, ...]) -> None:
    found = re.search(ROW.format(row), README.read_text("utf-8"))
    assert found is not None
    command = (Path(sys.executable).with_name("headrace"), "solve", "three-regions", "--json", *options)
    printed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    [b] = [route for route in printed["snapshot"]["routes"] if route["cluster"] == "cluster-b"]
    rps = {t["engine_id"]: 120.0 * t["weight_ppm"] / 1e6 for t in b["targets"]}
    assert found.groups() == (
        f"{rps['engine-b']:.1f}",
        f"{rps['engine-c']:.1f}",
        f"{printed['score']['end_to_end_ms']:.1f}",
    )
