"""The gateway under many requests and much malformed HTTP: the files, tasks and memory left. Not in the gate.

python tests/bench/soak_gateway.py --requests 100000 --malformed 10000
"""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))

from gateway_inputs import QUICK, rig
from gateway_strain import mixed, mixed_engines, settled, survives_malformed_http

STEPS = 5


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def soak(requests: int, malformed: int) -> None:
    settings = replace(QUICK, engine_keepalive_s=0.1, head_s=0.2, body_s=0.2, keepalive_s=0.5)
    async with rig(mixed_engines(), settings) as r:
        await mixed(r, 2_000)
        for step in range(STEPS + 1):
            began = time.monotonic()
            if step:
                await mixed(r, requests // STEPS)
            files, tasks = await settled(r)
            row = {
                "requests": step * (requests // STEPS),
                "files": files,
                "tasks": tasks,
                "mb": round(resident_mb(), 1),
            }
            print(json.dumps(row | {"seconds": round(time.monotonic() - began, 1)}), flush=True)
        for part in range(1, 3):  # twice, so that what grows can be told from what is taken once
            began = time.monotonic()
            await survives_malformed_http(r, malformed // 2, seed=1 + part)
            files, tasks = await settled(r)
            row = {"malformed": part * (malformed // 2), "files": files, "tasks": tasks, "mb": round(resident_mb(), 1)}
            print(json.dumps(row | {"seconds": round(time.monotonic() - began, 1)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--malformed", type=int, default=10_000)
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(soak(chosen.requests, chosen.malformed))
