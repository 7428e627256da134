"""Simulated engines for `headrace gateway --demo-engines`: the gateway can be tried on a laptop in one line.

Each serves llama-3.1-8b at the measured pace of an H100 under vLLM; weights are equal; one request in five may retry.
"""

import contextlib
import time
from collections.abc import AsyncGenerator

from headrace.dataplane.installation import NotInstalled
from headrace.dataplane.router import Router
from headrace.infra.fleet.curves import h100_curve, replica_curve
from headrace.infra.gateway.weights_source import FromMemory, undated
from headrace.infra.gateway_engine.behaviour import Behaviour, measured
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.schemas.errors import InvalidInputError

DEMO_CLUSTER = "demo"
MODEL = "llama-3.1-8b"
CAPACITY_RPS = 20.0
TOKENS = 128


@contextlib.asynccontextmanager
async def demo_engines_running(count: int, router: Router) -> AsyncGenerator[FromMemory]:
    """Run so many engines and route by equal weights; gives what takes the place of a source of weights.

    Raises:
        InvalidInputError: the router takes no such snapshot.
    """
    pace = measured(replica_curve(h100_curve(), CAPACITY_RPS))
    async with contextlib.AsyncExitStack() as stack:
        addresses: dict[str, str | None] = {}
        for i in range(count):
            engine = await stack.enter_async_context(SimulatedEngine(MODEL, Behaviour(pace, TOKENS)))
            addresses[f"engine-{i + 1}"] = engine.url
        now_ms = time.time_ns() // 1_000_000
        made = router.apply(undated(even_weights(addresses, router.cluster, MODEL, now_ms), now_ms))
        if isinstance(made, NotInstalled):
            raise InvalidInputError("demo engines", (f"{made.reason}: {made.sentence}",))
        yield FromMemory(router)
