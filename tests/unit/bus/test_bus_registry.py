"""Schemas from a registry, against a small HTTP server that answers as one."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from headrace.schemas.avro_schemas import raw_schema
from headrace.schemas.bus.registry import Registry, RegistryAwayError, client_options
from headrace.schemas.bus.settings import RegistrySettings
from headrace.schemas.codec import decode, encode_confluent, must
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.signals import NetworkProbe

PROBE = NetworkProbe("tokyo", "osaka", "probe-1", 1_000, 0.008)
GUID = "12345678-9abc-def0-1234-56789abcdef0"


class FakeRegistry(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    status = 200

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        FakeRegistry.asked.append(path)
        schema = json.dumps(raw_schema("NetworkProbe"))
        known = {
            "/schemas/ids/7": {"schema": schema},
            f"/schemas/guids/{GUID}": {"schema": schema, "guid": GUID, "id": 7},
        }
        if FakeRegistry.status != 200:
            self._answer(FakeRegistry.status, {"error_code": 50001, "message": "no"})
        elif path in known:
            self._answer(200, known[path])
        else:
            self._answer(404, {"error_code": 40403, "message": "Schema not found"})

    def _answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def url() -> Iterator[str]:
    FakeRegistry.asked.clear()
    FakeRegistry.status = 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeRegistry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def registry(url: str) -> Registry:
    return Registry(RegistrySettings(url, {"max.retries": "0"}))


def test_a_record_in_confluent_framing_is_read_with_its_writers_schema(url: str) -> None:
    assert must(decode(NetworkProbe, encode_confluent(PROBE, 7), (), registry(url))) == PROBE


def test_a_record_with_its_guid_in_a_header_is_read(url: str) -> None:
    body = encode_confluent(PROBE, 7)[5:]
    headers = (("__value_schema_id", b"\x01" + bytes.fromhex(GUID.replace("-", ""))),)
    assert must(decode(NetworkProbe, body, headers, registry(url))) == PROBE


def test_a_schema_is_asked_for_once(url: str) -> None:
    source = registry(url)
    assert source.by_id(7) == source.by_id(7)
    assert FakeRegistry.asked == ["/schemas/ids/7"]


def test_an_unknown_schema_is_a_rejection_and_is_not_asked_for_again(url: str) -> None:
    source = registry(url)
    for _ in range(3):
        outcome = decode(NetworkProbe, encode_confluent(PROBE, 8), (), source)
        assert isinstance(outcome, Rejected)
        assert outcome.reason is RejectReason.UNKNOWN_SCHEMA
    assert FakeRegistry.asked == ["/schemas/ids/8"]


def test_a_registry_that_fails_is_away_and_not_ignorant(url: str) -> None:
    FakeRegistry.status = 500
    with pytest.raises(RegistryAwayError):
        registry(url).by_id(7)


def test_a_registry_that_cannot_be_reached_is_away() -> None:
    with pytest.raises(RegistryAwayError):
        registry("http://127.0.0.1:1").by_id(7)


def test_numbers_among_the_clients_options_are_numbers() -> None:
    options = client_options(RegistrySettings("http://r", {"max.retries": "2", "basic.auth.user.info": "a:b"}))
    assert options["max.retries"] == 2
    assert options["basic.auth.user.info"] == "a:b"
