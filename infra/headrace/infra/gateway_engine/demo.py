"""Simulated engines for `headrace gateway --demo-engines`: the gateway can be tried on a laptop in one line.

Each serves llama-3.1-8b at the measured pace of an H100 under vLLM; weights are equal; one request in five may retry.
"""

import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from headrace.dataplane.installation import NotInstalled
from headrace.dataplane.router import Router
from headrace.infra.fleet.curves import h100_curve, replica_curve
from headrace.infra.gateway.weights_source import FromMemory, undated
from headrace.infra.gateway_engine.behaviour import Behaviour, measured
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import write_snapshot

DEMO_CLUSTER = "demo"
MODEL = "llama-3.1-8b"
CAPACITY_RPS = 20.0
TOKENS = 128


@contextlib.asynccontextmanager
async def demo_engines_running(
    count: int, router: Router, snapshot_out: Path | None = None
) -> AsyncGenerator[FromMemory]:
    """Run so many engines and route by equal weights; gives what takes the place of a source of weights.

    `snapshot_out` is a file that those weights are written to, for `headrace explain-request` and `headrace route`.

    Raises:
        InvalidInputError: the router takes no such snapshot, or the file cannot be written.
    """
    pace = measured(replica_curve(h100_curve(), CAPACITY_RPS))
    async with contextlib.AsyncExitStack() as stack:
        addresses: dict[str, str | None] = {}
        for i in range(count):
            engine = await stack.enter_async_context(SimulatedEngine(MODEL, Behaviour(pace, TOKENS)))
            addresses[f"engine-{i + 1}"] = engine.url
        now_ms = time.time_ns() // 1_000_000
        snapshot = undated(even_weights(addresses, router.cluster, MODEL, now_ms), now_ms)
        made = router.apply(snapshot)
        if isinstance(made, NotInstalled):
            raise InvalidInputError("demo engines", (f"{made.reason}: {made.sentence}",))
        if snapshot_out is not None:
            write_snapshot(snapshot_out, snapshot)
        yield FromMemory(router)
