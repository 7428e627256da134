"""`headrace console` on real brokers beside a real solver: over its API, and in a browser while Kafka restarts."""

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from browser import WAIT_MS, Watched, browser_running, needs_browser
from conftest import fresh_topics
from headrace.infra.brokers.contract import Broker
from headrace.infra.processes.child import ChildProcess
from headrace.infra.provision import apply_topics
from headrace.schemas.topics import TopicSettings
from solver_desk import WAIT_S, Desk, Solver, until

expect.set_options(timeout=WAIT_MS)


class ConsoleProcess(ChildProcess):
    """`headrace console` as a process of its own, on a free port."""

    def __init__(self, desk: Desk, log: Path) -> None:
        sets = (f"kafka.broker={desk.kafka.broker}", f"topics.prefix={desk.topics.prefix}")
        flags = [part for pair in sets for part in ("--set", pair)]
        command = (str(Path(sys.executable).with_name("headrace")), "console", "--listen", "127.0.0.1:0")
        super().__init__((*command, "--bootstrap", desk.kafka.bootstrap_servers, *flags), log)

    def url(self) -> str:
        """Where it listens, once it does."""
        until(lambda: bool(self._ready()), WAIT_S, self.log_tail)
        return self._ready().rstrip("/")

    def _ready(self) -> str:
        for line in self.log.read_text("utf-8").splitlines() if self.log.exists() else ():
            if line.startswith("{") and json.loads(line).get("event") == "console ready":
                return str(json.loads(line)["url"])
        return ""


def ask(url: str, path: str) -> Mapping[str, Any]:
    with urllib.request.urlopen(f"{url}/api/{path}", timeout=60) as response:  # noqa: S310 - our own console
        return dict(json.loads(response.read()))


@contextmanager
def running(broker: Broker, topics: TopicSettings, folder: Path) -> Iterator[ConsoleProcess]:
    """Engines that beat, a solver, and a console."""
    desk = Desk(broker.kafka, topics)
    solver = Solver(desk, folder / "solver.log", "solver.leader_election=false")
    console = ConsoleProcess(desk, folder / "console.log")
    desk.start()
    try:
        solver.start()
        console.start()
        yield console
    finally:
        console.stop()
        solver.stop()
        desk.stop()


@pytest.mark.embedded
def test_what_the_solver_writes_is_shown_explained_and_followed(embedded_broker: Broker, tmp_path: Path) -> None:
    topics = fresh_topics()
    apply_topics(embedded_broker.kafka, topics)
    with running(embedded_broker, topics, tmp_path) as console:
        url = console.url()
        until(lambda: ask(url, "status")["liveness"] == "LIVE", WAIT_S, console.log_tail)
        first = int(ask(url, "status")["version"])
        assert [line["cluster"] for line in ask(url, "overview")["clusters"]] == ["B", "A", "C"]
        table = ask(url, "engines")
        assert table["engine_id"] == ["e-a", "e-b", "e-c"]
        until(lambda: ask(url, "engines")["replicas_ready"] == [1, 1, 1], WAIT_S, console.log_tail)
        why = ask(url, f"explain?cluster=B&engine=e-b&version={first}")
        assert why["computed_again"]
        assert why["version"] == first
        *parts, whole = why["terms_ms"].values()
        assert sum(parts) == pytest.approx(whole, abs=1e-6)
        until(lambda: int(ask(url, "status")["version"]) > first, WAIT_S, console.log_tail)
        assert ask(url, f"overview?version={first}")["version"] == first
    assert '"event":"console stopped"' in console.log.read_text("utf-8")


@pytest.mark.apache
@pytest.mark.browser
@needs_browser
def test_the_page_lives_through_a_broker_that_goes_and_comes_back(
    apache_broker: Broker, apache_topics: TopicSettings, tmp_path: Path
) -> None:
    with (
        running(apache_broker, apache_topics, tmp_path) as console,
        browser_running() as browser,
        Watched(browser, console.url()) as watched,
    ):
        page = watched.page
        state, content = page.locator("#state"), page.locator("#content[data-version]")
        expect(content).to_be_visible()
        expect(state).to_contain_text("Live")
        page.locator("#weights .vt-row:visible").first.click()
        expect(page.locator("#why-sentences")).to_contain_text("one more request costs")
        page.keyboard.press("Escape")

        apache_broker.kill()
        expect(state).to_contain_text("Kafka lost")
        expect(page.locator("#banner")).to_contain_text("What is shown is version")
        before = int(content.get_attribute("data-version") or 0)
        apache_broker.restart()
        expect(state).to_contain_text("Live")
        expect(page.locator("#banner")).to_be_hidden()
        page.wait_for_function(
            "version => Number(document.querySelector('#content').dataset.version) > version", arg=before
        )
