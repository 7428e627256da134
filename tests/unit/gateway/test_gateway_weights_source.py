"""Weights from a file, the command, and the configuration's section."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner

from dataplane_inputs import route_weights, shares, snapshot
from gateway_inputs import CLUSTER, MODEL, QUICK, on_loop, rig, until
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.staleness import Staleness
from headrace.infra.commands.gateway import command
from headrace.infra.configuration.config import load
from headrace.infra.gateway.serve import Running
from headrace.infra.gateway.settings import EngineAccess, TrustSettings
from headrace.infra.gateway.weights_source import FromFile, FromKafka
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.snapshot_file import write_snapshot
from headrace.schemas.topics import TopicSettings

NOW_MS = time.time_ns() // 1_000_000


def test_a_file_holds_for_ever_and_is_followed_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.infra.gateway.weights_source.LOOK_AGAIN_S", 0.02)
    path = tmp_path / "weights.json"
    router = Router(DataPlaneSettings(), CLUSTER)
    said: list[str] = []
    installed: list[str] = []

    async def test() -> None:
        write_snapshot(path, snapshot(route_weights(shares(a=1)), version=1))  # its time to live ended in 1970
        source = FromFile(path, router, said.append, installed.append)
        await source.start()
        assert router.staleness(NOW_MS + 10**12) is Staleness.FRESH
        router.report(MODEL, "default", router.route(MODEL, now_ms=NOW_MS), now_ms=NOW_MS)
        await until(lambda: not router.demand._pending)
        write_snapshot(path, snapshot(route_weights(shares(b=1), version=2)))
        await until(lambda: installed == ["1.1", "1.2"])
        assert router.route(MODEL, now_ms=NOW_MS).engine_id == "b"
        write_snapshot(path, snapshot(route_weights(shares(a=1), version=1)))
        await until(lambda: any("NOT_NEWER" in sentence for sentence in said))
        path.write_text("{")
        await until(lambda: any("no JSON" in sentence for sentence in said))
        path.unlink()
        await until(lambda: any("No such file" in sentence for sentence in said))
        assert router.route(MODEL, now_ms=NOW_MS).engine_id == "b"
        await source.stop()

    on_loop(test)


def test_a_file_that_cannot_be_used_at_start_ends_the_start(tmp_path: Path) -> None:
    async def start(path: Path) -> None:
        router = Router(DataPlaneSettings(), CLUSTER)
        async with Running(QUICK, router, lambda r, say, new: FromFile(path, r, say, new), structlog.get_logger()):
            pass

    with pytest.raises(InvalidInputError, match="cannot be read"):
        on_loop(lambda: start(tmp_path / "none"))


def test_a_broker_that_is_away_is_waited_for_and_the_gateway_answers_meanwhile() -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:1")

    async def test() -> None:
        router = Router(DataPlaneSettings(), CLUSTER)
        async with Running(
            QUICK, router, lambda r, say, new: FromKafka(kafka, TopicSettings(), r, say, new), structlog.get_logger()
        ) as gateway:
            assert not gateway.readiness.ready()
            ready, document = gateway.readiness.report()
            assert (ready, document["weights"]) == (False, "ABSENT")
            await asyncio.sleep(0.1)

    on_loop(test)


@pytest.fixture
def demo() -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The command itself with two simulated engines; gives it and its port."""
    code = "from headrace.infra.cli import main; main()"
    arguments = [sys.executable, "-c", code, "gateway", "--demo-engines", "2", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        ready = json.loads(process.stderr.readline())
        yield process, ready["port"]
        if process.poll() is None:
            process.kill()


def test_the_command_serves_simulated_engines_and_ends_in_good_order(demo: tuple["subprocess.Popen[str]", int]) -> None:
    process, port = demo
    body = json.dumps({"model": "llama-3.1-8b", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]})
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body.encode())
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - loopback
        assert json.load(answer)["choices"][0]["message"]["content"] == "word word "
        assert 'engine="engine-' in answer.headers["x-headrace-decision"]
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(10) == 0


def test_wrong_usage_is_told() -> None:
    both = CliRunner().invoke(command, ["--snapshot", "x", "--demo-engines", "1"])
    assert (both.exit_code, "give one of them" in both.output) == (2, True)
    for listen in ("8080", ":80", "host:", "host:99999"):
        result = CliRunner().invoke(command, ["--listen", listen])
        assert (result.exit_code, "is not HOST:PORT" in result.output) == (2, True)


def test_the_section_is_read_from_a_file_with_all_its_problems_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "headrace.toml"
    file.write_text(
        """
        [gateway]
        cluster = "tokyo"
        retry_statuses = [503]
        [gateway.trust]
        allow = { x-from-edge = ["yes"] }
        [gateway.engines."gpu-1"]
        alias = "west"
        auth_env = "KEY"
        """
    )
    gateway = load(file).gateway
    assert gateway == replace(
        gateway,
        cluster="tokyo",
        retry_statuses=(503,),
        trust=TrustSettings(allow={"x-from-edge": ("yes",)}),
        engines={"gpu-1": EngineAccess(alias="west", auth_env="KEY")},
    )
    file.write_text('[gateway]\nconnect_s = 0\nmax_body_bytes = "x"\nretry_statuses = [429]\nclutser = "a"\n')
    with pytest.raises(InvalidInputError) as raised:
        load(file)
    problems = "\n".join(raised.value.problems)
    assert len(raised.value.problems) == 4
    assert "gateway.clutser: no such setting; the nearest is cluster" in problems
    for name in ("connect_s", "max_body_bytes", "retry_statuses"):
        assert f"gateway.{name}" in problems


def test_a_gateway_that_ends_says_so() -> None:
    async def test() -> None:
        with structlog.testing.capture_logs() as logs:
            async with rig(0):
                pass
        assert [line["event"] for line in logs] == ["gateway ready", "gateway stopped"]

    on_loop(test)
