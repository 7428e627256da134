"""The console over HTTP: the gate, the answers, the stream of events, and what stands in every answer's head."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode

import pytest

from console_inputs import Served, Town, now_ms, served, settled_desk, soon_ms
from headrace.infra.console.core.status import Link
from headrace.infra.kafka_edge import UnreachableError
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport

TOKEN = "a-token-of-some-length"  # noqa: S105 - a test's own


@pytest.fixture
def town() -> Town:
    return Town()


@pytest.fixture
def open_console(town: Town) -> Iterator[Served]:
    with served(settled_desk(town)) as console:
        yield console


@pytest.fixture
def locked_console(town: Town) -> Iterator[Served]:
    with served(settled_desk(town), TOKEN) as console:
        yield console


def ask(console: Served, path: str, method: str = "GET", body: str | None = None, **headers: str) -> HTTPResponse:
    connection = HTTPConnection(console.url.removeprefix("http://"), timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    response.text = response.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return response


def document(response: HTTPResponse) -> dict[str, object]:
    return dict(json.loads(response.text))  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/console.css", "/lib/plotly.min.js", "/api/status"])
def test_without_a_token_on_loopback_everything_is_open(open_console: Served, path: str) -> None:
    assert ask(open_console, path).status == 200


@pytest.mark.parametrize("path", ["/", "/api/overview", "/api/events", "/page/main.js"])
def test_another_sites_name_reaches_nothing(open_console: Served, path: str) -> None:
    assert ask(open_console, path, Host="evil.example").status == 421


@pytest.mark.parametrize("path", ["/api/status", "/api/overview", "/api/events", "/page/main.js", "/lib/plotly.min.js"])
def test_without_the_token_nothing_is_told(locked_console: Served, path: str) -> None:
    response = ask(locked_console, path)
    assert response.status == 401
    assert document(response) == {"error": "a token is needed"}


def test_without_the_token_the_page_leads_to_the_login(locked_console: Served) -> None:
    response = ask(locked_console, "/")
    assert (response.status, response.headers["Location"]) == (303, "/login")
    assert ask(locked_console, "/login").status == 200


def test_the_token_opens_by_header(locked_console: Served) -> None:
    assert ask(locked_console, "/api/status", Authorization=f"Bearer {TOKEN}").status == 200
    assert ask(locked_console, "/api/status", Authorization="Bearer wrong").status == 401


def test_a_login_opens_by_a_cookie_that_is_not_the_token_and_a_logout_closes(locked_console: Served) -> None:
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    wrong = ask(locked_console, "/login", "POST", urlencode({"token": "wrong"}), **kind)
    assert (wrong.status, wrong.headers["Location"], wrong.headers["Set-Cookie"]) == (303, "/login#wrong", None)
    right = ask(locked_console, "/login", "POST", urlencode({"token": TOKEN}), **kind)
    cookie = right.headers["Set-Cookie"]
    assert right.headers["Location"] == "/"
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    session = cookie.partition(";")[0]
    assert ask(locked_console, "/api/status", Cookie=session).status == 200
    ask(locked_console, "/logout", "POST", Cookie=session)
    assert ask(locked_console, "/api/status", Cookie=session).status == 401


def test_every_answer_has_the_policy_and_tells_no_other_site(open_console: Served) -> None:
    for path in ("/", "/api/status", "/api/nothing", "/page/console.css"):
        headers = ask(open_console, path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("path", ["/page/../serve.py", "/page/%2e%2e/serve.py", "/page/none.js", "/etc/passwd"])
def test_no_other_file_can_be_had(open_console: Served, path: str) -> None:
    assert ask(open_console, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed(open_console: Served, method: str) -> None:
    assert ask(open_console, "/api/overview", method).status == 405


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/overview?version=x", 400, "version is 'x'"),
        ("/api/overview?version=77", 404, "held are 1 to 5"),
        ("/api/engine?engine=nobody", 404, "'nobody'"),
        ("/api/flows?group=moon&top=0", 400, "one of site, model, engine"),
        ("/api/history?cluster=a", 400, "model is missing"),
        ("/api/weights?cluster=" + "c" * 201, 400, "cluster has 201 characters"),
        ("/api/explain?cluster=a", 400, "engine is missing"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(
    open_console: Served, path: str, status: int, said: str
) -> None:
    response = ask(open_console, path)
    assert response.status == status
    assert said in str(document(response)["error"])


def test_a_page_that_was_seen_is_not_sent_again(open_console: Served) -> None:
    etag = ask(open_console, "/").headers["ETag"]
    assert ask(open_console, "/", If_None_Match=etag).status == 304


def test_why_is_the_explanation_of_the_version_that_is_looked_at(town: Town) -> None:
    asked: list[tuple[AskedWeight, Wanted]] = []

    def explain(weight: AskedWeight, wanted: Wanted) -> WeightReport:
        asked.append((weight, wanted))
        raise UnreachableError("kafka-1:9092 does not answer: refused")

    with served(settled_desk(town), explain=explain) as console:
        response = ask(console, "/api/explain?version=3&cluster=c&engine=e&model=m&class=d")
    assert response.status == 503
    assert "does not answer" in str(document(response)["error"])
    assert asked == [(AskedWeight("c", "e", "m", "d"), Wanted(version=3, text="version 3"))]


class Stream:
    """Reads server-sent events off a socket."""

    def __init__(self, console: Served) -> None:
        host, _, port = console.url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.sendall(f"GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        self._lines = self._socket.makefile("rb")

    def until(self, **wanted: object) -> dict[str, object]:
        """Give the next event that is as wanted; the socket's time-out ends a vain wait."""
        for line in self._lines:
            if line.startswith(b"data: "):
                found = dict(json.loads(line.removeprefix(b"data: ")))
                if wanted.items() <= found.items():
                    return found
        raise AssertionError(f"the stream ended before {wanted}")

    def close(self) -> None:
        self._socket.close()


def test_a_page_is_told_at_once_and_of_every_new_version(open_console: Served, town: Town) -> None:
    with closing(Stream(open_console)) as stream:
        assert stream.until(version=5)["liveness"] == "LIVE"
        open_console.offer(town.tick(soon_ms()))
        stream.until(version=6)
        open_console.link(Link(now_ms(), "refused", caught_up=True))
        assert "refused" in str(stream.until(liveness="BROKER_LOST")["sentence"])
        open_console.link(Link(None, "", caught_up=True))
        stream.until(liveness="LIVE")


def test_no_more_pages_follow_than_may(open_console: Served) -> None:
    streams = [Stream(open_console) for _ in range(8)]
    for stream in streams:
        stream.until(version=5)
    assert ask(open_console, "/api/events").status == 503
    for stream in streams:
        stream.close()
