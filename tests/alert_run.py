"""A demo with a gateway, a bridge and a Prometheus beside it, for asking what alerts and panels say of it.

    fleet ─► streams ─► solver ─► three data planes, and a gateway with two engines of its own
    team's topic ─► bridge     /metrics ─► sidecar       Prometheus scrapes all five, twice a second

Time passes in `until`: the fleet lives on, and Prometheus is asked, until something holds.
"""

import asyncio
import json
import math
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from confluent_kafka.cimpl import NewTopic

from alert_files import ALERTS, PANELS
from headrace.infra.configuration.config import Config
from headrace.infra.demo.session import DemoOptions, Session
from headrace.infra.fleet.scenarios import load_scenario
from headrace.infra.gateway_engine.behaviour import Behaviour, Fault, constant
from headrace.infra.gateway_engine.engine import SimulatedEngine
from headrace.infra.processes.child import ChildProcess
from headrace.infra.processes.ports import free_ports
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.codec import encode
from headrace.schemas.topics import TopicSettings, topic_table

WAIT_S = 60.0
TEAM = "team.metrics"
MODEL = "llama-3.1-8b"
HEADRACE = str(Path(sys.executable).with_name("headrace"))
PARTS = ("streams", "solver", "bridge", "sidecar", "gateway")
GOOD = Behaviour(constant(0.01, 0.002), tokens=8)


SCRAPE = (Path(__file__).parent / "samples/prom/vllm_v1_scrape_0_t1787400000000.prom").read_bytes()
ASIDE = "engine-s"
"""An engine of the sidecar's, drained: it is heard of and carries nothing."""


class Exposition:
    """An engine's `/metrics`; `text` is what it says from the next scrape on."""

    def __init__(self) -> None:
        self.text = SCRAPE
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(outer.text)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Callers:
    """Two engines of the gateway's own, and people who ask it, on a loop in a thread of their own."""

    def __init__(self) -> None:
        self.engines: dict[str, SimulatedEngine] = {}
        self.loop = asyncio.new_event_loop()
        self.statuses: dict[int, int] = {}
        self.pause_s = 1.0
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._asking: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._thread.start()
        for name in ("engine-b", "engine-c"):
            self.engines[name] = SimulatedEngine(MODEL, GOOD)
            self._wait(self.engines[name].start())

    def ask(self, url: str) -> None:
        async def begin() -> None:
            self._asking = [self.loop.create_task(self._ask(url, caller)) for caller in range(4)]

        self._wait(begin())

    def behave(self, **faults: Fault) -> None:
        for name, fault in faults.items():
            self.engines[f"engine-{name}"].behaviour = replace(GOOD, fault=fault)

    def stop(self) -> None:
        async def end() -> None:
            for task in self._asking:
                task.cancel()
            await asyncio.gather(*self._asking, return_exceptions=True)
            for engine in self.engines.values():
                await engine.stop()

        self._wait(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30.0)

    async def _ask(self, url: str, caller: int) -> None:
        async with aiohttp.ClientSession() as session:
            number = 0
            while True:
                number += 1
                body: Any = {
                    "model": MODEL,
                    "stream": True,
                    "messages": [{"role": "user", "content": f"{caller}.{number}"}],
                }
                with suppress(aiohttp.ClientError, TimeoutError):
                    given = {"json": body} if number % 20 else {"data": b"no json"}
                    async with session.post(f"{url}/v1/chat/completions", **given) as answer:
                        await answer.read()
                        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
                await asyncio.sleep(self.pause_s)

    def _wait(self, what: Any) -> None:  # noqa: ANN401 - any coroutine
        asyncio.run_coroutine_threadsafe(what, self.loop).result(30.0)


@dataclass
class AlertRun:
    """The run. `fired` and `told` gather which alerts' expressions held, and which panels' had values."""

    prometheus: str
    folder: Path
    stack: ExitStack
    fired: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    callers: Callers = field(default_factory=Callers)
    exposition: Exposition = field(default_factory=Exposition)
    lives: bool = True
    names: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def __post_init__(self) -> None:
        *ports, self._port, self.other_port = free_ports(len(PARTS) + 2)
        self.ports = dict(zip(PARTS, ports, strict=True))
        base = Config()
        config = replace(
            base,
            topics=TopicSettings(partitions=2),
            streams=replace(base.streams, metrics_port=self.ports["streams"], session_timeout_ms=6_000),
            solver=replace(base.solver, metrics_port=self.ports["solver"]),
        )
        options = DemoOptions(load_scenario("three-regions"), "embedded", 7, self.folder / "demo")
        self.session = Session(options, config)
        self.stack.callback(self.session.stop)
        self.topics = topic_table(config.topics)

    def start(self) -> None:
        """Start all of it, and wait until every process is scraped."""
        self.session.start()
        for name in ("streams", "solver"):
            self.stack.callback(self.worker(name).kill)
        self.kafka = self.session._broker.kafka
        self.publisher = Publisher(self.kafka)
        self.stack.callback(self.publisher.close, 0.5)
        client = admin_client(self.kafka)
        for made in client.create_topics([NewTopic(TEAM, 1, 1)]).values():
            made.result(30)
        self.callers.start()
        self.stack.callback(self.callers.stop)
        gateway = {f"gateway.engines.{n}.address": engine.url for n, engine in self.callers.engines.items()}
        gateway |= {"gateway.port": str(self.ports["gateway"]), "gateway.cluster": "cluster-b"}
        self.child("gateway", gateway)
        bridge = {
            "bridge.metrics_port": str(self.ports["bridge"]),
            "bridge.begin": "earliest",
            "bridge.report_ms": "500",
            "bridge.sources.team.topic": TEAM,
            "bridge.sources.team.carrier": "otlp_proto",
            "bridge.sources.team.preset": "vllm_v1",
        }
        self.child("bridge", bridge)
        self.stack.callback(self.exposition.stop)
        spec = replace(self.session.options.scenario.engines[0].spec, engine_id=ASIDE, drain=True)
        self.put(self.topics["fleet"].name, [(spec.key, encode(spec))])
        flags = ("--url", self.exposition.url, "--engine-id", ASIDE, "--preset", "vllm_v1", "--every", "1")
        self.child(
            "sidecar", {"sidecar.metrics_port": str(self.ports["sidecar"])}, HEADRACE, "signals", "publish", *flags
        )
        self._scrape()
        self.until(lambda: len(self.query('up{job=~"headrace-.*"} == 1')) == len(PARTS), "every process is scraped")
        self.callers.ask(f"http://127.0.0.1:{self.ports['gateway']}")

    def child(self, name: str, settings: dict[str, str], *argv: str, log: str | None = None) -> ChildProcess:
        """Start a process of ours with the demo's configuration and more; it ends with the run."""
        sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        config = str(self.folder / "demo/headrace.toml")
        process = ChildProcess(
            (*(argv or (HEADRACE, name)), "--config", config, *sets), self.folder / f"{log or name}.log"
        )
        self.stack.callback(process.kill)  # its broker is gone by then: good order would take seconds
        process.start()
        return process

    def worker(self, name: str) -> ChildProcess:
        """Give one of the demo's own workers."""
        return self.session.workers._children[name]

    def until(self, met: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
        """Let time pass until something holds; the panels are looked at meanwhile."""
        deadline, look_s = time.monotonic() + timeout_s, 0.0
        while not met():
            late = f"not within {timeout_s:g} s: {what}; fired {sorted(self.fired)}; firing "
            assert time.monotonic() < deadline, late + str(self.firing())
            self.live()
            if time.monotonic() >= look_s:
                self.look()
                look_s = time.monotonic() + 1.0

    def live(self) -> None:
        """Let the fleet live up to now; a worker that was killed on purpose is no fault here."""
        if self.lives:
            self.session.simulation.run_until(max(0.0, time.monotonic() - self.session._zero))
        time.sleep(0.02)

    def until_fired(self, *alerts: str, in_s: float = 0.0) -> None:
        """Let time pass until each alert's expression has held; `in_s` later, if nothing changed."""

        self.until(lambda: self.fires(*alerts, in_s=in_s), f"{sorted(alerts)} fire")

    def fires(self, *alerts: str, in_s: float = 0.0) -> bool:
        """Say whether each alert's expression has held by now."""
        self.fired |= {name for name in alerts if self.query(ALERTS[name]["expr"], in_s)}
        return self.fired.issuperset(alerts)

    def firing(self) -> list[str]:
        """Give the alerts whose expressions hold now."""
        return [name for name, rule in ALERTS.items() if self.query(rule["expr"])]

    def look(self) -> None:
        """Take note of the panels that have a value now."""
        for name in PANELS.keys() - self.told:
            if any(not math.isnan(float(found["value"][1])) for found in self.query(PANELS[name])):
                self.told.add(name)

    def query(self, expression: str, in_s: float = 0.0) -> list[Any]:
        """Ask Prometheus; what it would say `in_s` later if nothing were scraped any more."""
        asked = {"query": expression}
        if in_s:
            asked["time"] = f"{time.time() + in_s:.3f}"
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found: list[Any] = json.loads(answer.read())["data"]["result"]
        return found

    def exported(self) -> dict[str, set[str]]:
        """Give by process the names of what it shows, without their beginning."""
        found: dict[str, set[str]] = {}
        for part, port in self.ports.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                types = [line.split()[2] for line in answer.read().decode().splitlines() if line.startswith("# TYPE ")]
            begin = f"headrace_{part}_"
            found[part] = {name.removeprefix(begin) for name in types if name.startswith(begin)}
        return found

    def put(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Publish records, and wait until the broker has them."""
        for key, value in records:
            self.publisher.publish(topic, key, value)
        assert self.publisher.flush(30.0) == 0

    def _scrape(self) -> None:
        jobs = [
            {"job_name": f"headrace-{part}", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for part, port in self.ports.items()
        ]
        # A second solver comes later: until then nobody shall miss it.
        jobs.append({"job_name": "other", "static_configs": [{"targets": [f"127.0.0.1:{self.other_port}"]}]})
        file = self.folder / "prometheus.yml"
        given = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"}, "scrape_configs": jobs}
        file.write_text(yaml.safe_dump(given), "utf-8")
        argv = (
            self.prometheus,
            f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--log.level=warn",
        )
        server = ChildProcess(argv, self.folder / "prometheus.log")
        self.stack.callback(server.kill)
        server.start()
        deadline = time.monotonic() + WAIT_S
        while True:
            with suppress(OSError):
                self.query("vector(1)")
                return
            assert time.monotonic() < deadline, server.log_tail()
            self.live()
