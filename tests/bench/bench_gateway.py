"""What the gateway adds to a request, beside a raw pass-through and, where they are given, other proxies; in one run.

    python tests/bench/bench_gateway.py [--litellm PATH/TO/litellm] [--sglang PATH/TO/sglang-router]
                                        [--vllm PATH/TO/vllm-router] [--requests 2000] [--connections 1 32 256]

Those three live in environments of their own. LiteLLM's is a proxy in Python as ours is; the other two are in Rust.

Client, engine and each proxy are processes of their own on the loopback address; the engine is simulated and answers
at once with 16 tokens. The pass-through is what one would write with aiohttp in ten lines: it reads the body, posts it,
and passes the answer on; it does not route, measure, bound or retry anything. Paths take turns in short rounds, so that
what else the machine does meets all of them. `whole` is a request to its last byte, `stream` one to its first event.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import numpy as np
import uvloop
from aiohttp import web

from headrace.infra.gateway_engine.behaviour import Behaviour, constant
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.gateway_engine.even_weights import even_weights
from headrace.infra.processes.ports import free_ports
from headrace.schemas.snapshot_file import write_snapshot

MODEL = "m"
ROUNDS = 10
PATH = "/v1/chat/completions"
START_S = 90
CREDENTIAL = "sk-" + "bench" * 8
"""litellm does not start without one; every path gets it, so that all read the same headers."""


async def run_engine(port: int) -> None:
    engine = SimulatedEngine(MODEL, Behaviour(constant()))
    engine.port = port
    async with engine:
        await asyncio.Event().wait()


async def run_passthrough(port: int, engine: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def answer(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            async with session.post(
                engine + request.path, data=body, headers={"Content-Type": "application/json"}
            ) as up:
                down = web.StreamResponse(status=up.status, headers={"Content-Type": up.headers["Content-Type"]})
                await down.prepare(request)
                async for chunk in up.content.iter_any():
                    await down.write(chunk)
                return down

        app = web.Application()
        app.router.add_post(PATH, answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


@contextlib.contextmanager
def processes(litellm: str | None, rust: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """Start everything; gives the base URL of each path. `rust`: how the proxies in Rust are called, by name."""
    direct, passthrough, gateway, other, *more_ports = free_ports(4 + 2 * len(rust))
    url = {"direct": direct, "pass-through": passthrough, "headrace": gateway} | ({"litellm": other} if litellm else {})
    url |= dict(zip(rust, more_ports[::2], strict=True))
    base = {name: f"http://127.0.0.1:{port}" for name, port in url.items()}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        now_ms = time.time_ns() // 1_000_000
        write_snapshot(folder / "weights.json", even_weights({"engine-1": base["direct"]}, "A", MODEL, now_ms))
        headrace = ["gateway", "--cluster", "A", "--snapshot", str(folder / "weights.json")]
        code = "from headrace.infra.cli import main; main()"
        commands = [
            [sys.executable, __file__, "--role", "engine", "--port", str(direct)],
            [
                sys.executable,
                __file__,
                "--role",
                "pass-through",
                "--port",
                str(passthrough),
                "--engine",
                base["direct"],
            ],
            [sys.executable, "-c", code, *headrace, "--listen", f"127.0.0.1:{gateway}"],
        ]
        if litellm:
            parameters = {"model": f"openai/{MODEL}", "api_base": f"{base['direct']}/v1", "api_key": "none"}
            config = {"model_list": [{"model_name": MODEL, "litellm_params": parameters}]}
            (folder / "litellm.yaml").write_text(json.dumps(config))  # JSON is YAML
            more = ["--host", "127.0.0.1", "--port", str(other), "--telemetry", "False"]
            commands.append([litellm, "--config", str(folder / "litellm.yaml"), *more])
        for (name, call), metrics in zip(rust.items(), more_ports[1::2], strict=True):
            at = ["--host", "127.0.0.1", "--port", str(url[name]), "--prometheus-port", str(metrics)]
            commands.append([*call, "--worker-urls", base["direct"], "--policy", "round_robin", *at])
        env = os.environ | {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_LOG": "ERROR",
            "LITELLM_MASTER_KEY": CREDENTIAL,
        }
        for number, command in enumerate(commands):
            log = stack.enter_context((folder / f"{number}.log").open("w"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=env)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield base


async def ask(session: aiohttp.ClientSession, url: str, *, stream: bool) -> float:
    """Ask once; gives the seconds to the last byte, or of a stream to the first event."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello " * 100}], "stream": stream}
    began = time.perf_counter()
    async with session.post(url + PATH, json=body, headers={"Authorization": f"Bearer {CREDENTIAL}"}) as answer:
        if answer.status != 200:
            raise SystemExit(f"{url}: {answer.status} {await answer.text()}")
        if stream:
            await answer.content.readany()
            took = time.perf_counter() - began
            await answer.read()
            return took
        await answer.read()
        return time.perf_counter() - began


async def measure(base: dict[str, str], connections: int, requests: int, *, stream: bool) -> dict[str, list[float]]:
    """Give each path's latencies, the paths taking turns."""
    took: dict[str, list[float]] = {name: [] for name in base}
    async with contextlib.AsyncExitStack() as stack:
        sessions = {
            name: await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections))
            )
            for name in base
        }

        async def some(name: str, count: int) -> None:
            for _ in range(count):
                took[name].append(await ask(sessions[name], base[name], stream=stream))

        for turn in range(ROUNDS + 1):
            for name in base:
                if turn == 1:
                    took[name].clear()  # the first round was to warm up
                each = max(1, requests // ROUNDS // connections)
                await asyncio.gather(*(some(name, each) for _ in range(connections)))
    return took


async def wait_ready(base: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        for name, url in base.items():
            for attempt in range(START_S * 4):
                try:
                    await ask(session, url, stream=False)
                    break
                except (aiohttp.ClientError, SystemExit):
                    if attempt == START_S * 4 - 1:
                        raise SystemExit(f"{name} did not start") from None
                    await asyncio.sleep(0.25)


def judge(added: dict[str, float]) -> None:
    """Say whether the bars hold for one row: they are for one connection."""
    for name, most in (("pass-through", 2.0), ("litellm", 0.5)):
        if name in added:
            ratio = added["headrace"] / added[name]
            print(f"    {'met    ' if ratio <= most else 'NOT MET'} added p50 over {name}'s: {ratio:.2f} <= {most}")


async def bench(base: dict[str, str], requests: int, connections: list[int]) -> None:
    await wait_ready(base)
    print(f"{'':>22} {'path':>14} {'p50 ms':>8} {'p99 ms':>8} {'added p50':>10} {'added p99':>10} {'RPS':>7}")
    for count in connections:
        for kind in ("whole", "stream"):
            took = await measure(base, count, requests, stream=kind == "stream")
            direct = np.percentile(took["direct"], [50, 99]) * 1e3
            added_p50 = {name: float(np.median(took[name]) * 1e3 - direct[0]) for name in base}
            for name in base:
                p50, p99 = np.percentile(took[name], [50, 99]) * 1e3
                rate = count * len(took[name]) / sum(took[name])
                added = f"{p50 - direct[0]:>10.3f} {p99 - direct[1]:>10.3f}"
                print(
                    f"{kind:>7}, {count:>4} at once {name:>14} {p50:>8.3f} {p99:>8.3f} {added} {rate:>7.0f}", flush=True
                )
            if count == 1:
                judge(added_p50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litellm", help="the litellm command of an environment of its own")
    parser.add_argument("--sglang", help="the sglang-router command, likewise")
    parser.add_argument("--vllm", help="the vllm-router command, likewise")
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32, 256])
    parser.add_argument("--role", choices=["engine", "pass-through"], help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if chosen.role == "engine":
            runner.run(run_engine(chosen.port))
        elif chosen.role == "pass-through":
            runner.run(run_passthrough(chosen.port, chosen.engine))
        else:
            rust = {"sglang-router": [chosen.sglang, "launch"], "vllm-router": [chosen.vllm]}
            with processes(chosen.litellm, {name: call for name, call in rust.items() if call[0]}) as base:
                runner.run(bench(base, chosen.requests, chosen.connections))


if __name__ == "__main__":
    main()
