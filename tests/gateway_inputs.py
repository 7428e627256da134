"""A gateway between real clients and simulated engines, all on the loopback address, for the gateway's tests."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import structlog
import uvloop
from openai import AsyncOpenAI

from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.settings import GatewaySettings
from headrace.infra.gateway.weights_source import FromMemory
from headrace.infra.gateway_engine.behaviour import Behaviour, Fault, constant
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights

MODEL = "m"
CLUSTER = "A"
QUICK = GatewaySettings(
    port=0, head_s=20.0, keepalive_s=30.0, body_s=20.0, connect_s=10.0, first_byte_s=20.0, idle_s=20.0, total_s=40.0,
    probe_period_s=0.05, drain_s=1.0,
)  # fmt: skip
GOOD = Behaviour(constant())
T = TypeVar("T")


@dataclass
class Rig:
    """What a test holds: the gateway, the engines by id, and where to ask."""

    gateway: Running
    engines: dict[str, SimulatedEngine]

    @property
    def url(self) -> str:
        scheme = "http" if self.gateway.settings.tls_certificate_file is None else "https"
        return f"{scheme}://127.0.0.1:{self.gateway.port}"

    def client(self, **more: Any) -> AsyncOpenAI:  # noqa: ANN401 - the client's own options
        options: dict[str, Any] = {"api_key": "none", "max_retries": 0, "timeout": 10.0} | more
        return AsyncOpenAI(base_url=f"{self.url}/v1", **options)

    def metric(self, name: str, **labels: str) -> float:
        """Give a metric's value; 0 where it was never counted."""
        value = self.gateway.metrics.registry.get_sample_value(f"headrace_gateway_{name}", labels)
        return 0.0 if value is None else value


@contextlib.asynccontextmanager
async def rig(
    behaviours: Mapping[str, Behaviour] | int = 1,
    settings: GatewaySettings = QUICK,
    *,
    retry_ratio: float = 0.5,
    dataplane: DataPlaneSettings | None = None,
    addresses: Mapping[str, str] | None = None,
    **engine: Any,  # noqa: ANN401 - the simulated engine's own options
) -> AsyncIterator[Rig]:
    """Run engines by id (or so many good ones: e1, e2, ...) and a gateway over them, with equal weights."""
    if isinstance(behaviours, int):
        behaviours = {f"e{i + 1}": GOOD for i in range(behaviours)}
    async with contextlib.AsyncExitStack() as stack:
        engines = {
            name: await stack.enter_async_context(SimulatedEngine(MODEL, behaviour, **engine))
            for name, behaviour in behaviours.items()
        }
        at = {name: one.url for name, one in engines.items()} | dict(addresses or {})
        router = Router(dataplane or DataPlaneSettings(), CLUSTER)
        router.apply(even_weights(at, CLUSTER, MODEL, time.time_ns() // 1_000_000, retry_ratio=retry_ratio))
        running = Running(settings, router, lambda router, _say, _installed: FromMemory(router), structlog.get_logger())
        gateway = await stack.enter_async_context(running)
        yield Rig(gateway, engines)


def on_loop(test: Callable[[], Awaitable[T]], limit_s: float = 60.0) -> T:
    """Run a test's coroutine on the loop that the gateway is made for."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(_of(test), limit_s))


async def _of(test: Callable[[], Awaitable[T]]) -> T:
    return await test()


def faulty(fault: Fault, **more: Any) -> Behaviour:  # noqa: ANN401 - any field of a behaviour
    return replace(GOOD, fault=fault, **more)


async def until(true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def say(text: str = "hello") -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]
