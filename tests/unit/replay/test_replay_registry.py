"""History in Confluent framing, replayed by commands with a registry that answers, is away, or is none."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from click.testing import CliRunner, Result
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from headrace.infra.cli import headrace
from headrace.schemas.avro_schemas import raw_schema
from headrace.schemas.bus.registry import Registry
from headrace.schemas.bus.settings import RegistrySettings
from headrace.schemas.codec import encode, encode_confluent
from headrace.schemas.errors import HeadraceError
from headrace.schemas.records import Record
from headrace.schemas.topics import SHADOW, SNAPSHOTS
from headrace.solver.core.inputs.state_view import StateFold
from headrace.streams.core.partitioner import partition_of
from replay_history import PERIOD_MS, TABLE, Run
from replay_signals import signals

TICKS = 8
NOWHERE = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Front:
    """A registry at an address, and the client of the mock that stands behind it."""

    url: str
    client: Any

    def framed(self, record: Record) -> bytes:
        """Frame a record as a producer does that registers its schema."""
        name = type(record).__name__
        schema = Schema(orjson.dumps(raw_schema(name)).decode(), "AVRO")
        return encode_confluent(record, self.client.register_schema(f"{name}-value", schema))


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    """The client's own mock registry behind an address, so that every process can ask it."""
    client: Any = SchemaRegistryClient.new_client({"url": "mock://headrace-replay"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            schema_id = urlsplit(self.path).path.removeprefix("/schemas/ids/")
            try:
                status, told = 200, {"schema": client.get_schema(int(schema_id)).schema_str}
            except (SchemaRegistryError, ValueError) as error:
                status, told = 404, {"error_code": 40403, "message": str(error)}
            body = orjson.dumps(told)
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Front(f"http://127.0.0.1:{server.server_address[1]}", client)
        server.shutdown()
        thread.join(30)


class PlainRun(Run):
    """A run with signals beside its states."""

    def put(self, record: Record, at_ms: int | None = None) -> None:
        topic = TABLE[next(role for role, each in TABLE.items() if each.record is type(record))]
        place = topic.name, partition_of(record.key, topic.partitions)
        self.append(place, record.key, self.encoded(record), at_ms)

    def encoded(self, record: Record) -> bytes:
        return encode(record)


class FramedRun(PlainRun):
    """The same, with inputs and signals in Confluent framing."""

    def __init__(self, front: Front) -> None:
        super().__init__()
        self._front = front
        self.fold = StateFold(TABLE, Registry(RegistrySettings(url=front.url)))

    def encoded(self, record: Record) -> bytes:
        return self._front.framed(record)


def written(run: Run, folder: Path, between: Callable[[Run], None] = lambda _: None) -> Path:
    """Let the run pass, with a shadow that decides the same, and write it."""
    run.declare()
    between(run)
    for number in range(TICKS):
        run.beat(60.0 + 4 * (number % 5))
        run.tick()
    run.logs[TABLE[SHADOW].name, 0] = list(run.logs[TABLE[SNAPSHOTS].name, 0])
    return run.write(folder)


def signalled(run: Run, folder: Path) -> Path:
    """Let engines, gateways and probes speak, with nobody there to fold and to decide."""
    run.declare()
    for number in range(TICKS):
        run.now_ms += PERIOD_MS
        for signal in signals(number):
            run.put(signal)
    return run.write(folder)


@pytest.fixture(scope="module")
def framed(front: Front, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of history, all of whose inputs are in Confluent framing."""
    return written(FramedRun(front), tmp_path_factory.mktemp("framed") / "history")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same history in our own framing."""
    return written(PlainRun(), tmp_path_factory.mktemp("plain") / "history")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(headrace, [str(each) for each in arguments])


def played(*arguments: object) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: list[dict[str, Any]] = json.loads(result.stdout)["variants"]
    return found


def refused(*arguments: object) -> str:
    """What a command says that does not do what it was asked for: one message, never a traceback."""
    result = run(*arguments)
    assert isinstance(result.exception, HeadraceError), repr(result.exception) + result.output
    return str(result.exception)


def asked(front: Front) -> tuple[str, str]:
    return "--set", f"registry.url={front.url}"


def compared(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((out / "comparison.json").read_bytes())
    return found


@pytest.mark.parametrize("processes", [1, 2])
def test_framed_history_is_verified_in_any_number_of_processes(front: Front, framed: Path, processes: int) -> None:
    result = run("replay", "verify", "--dir", framed, *asked(front), "--json", "--processes", processes)
    assert result.exit_code == 0, result.output + repr(result.exception)
    told = json.loads(result.stdout)
    assert told["identical"] == told["proved"] == TICKS
    assert told["findings"] == []


@pytest.mark.parametrize("more", [("--processes", 1), ("--processes", 2)])
def test_variants_over_framed_history_come_to_what_they_come_to_over_plain_history(
    front: Front, framed: Path, plain: Path, more: tuple[object, ...], tmp_path: Path
) -> None:
    variants = ("replay", "run", "--policy", "recorded", "--policy", "proportional:k=0.3", *more)
    ours = played(*variants, "--dir", framed, "--out", tmp_path / "framed", *asked(front))
    theirs = played(*variants, "--dir", plain, "--out", tmp_path / "plain")
    assert ours[0]["ticks"] == TICKS
    # Digests of weights, without the input digests that stand in the commits of another history.
    assert [(each["name"], each["ticks"], each["same"]) for each in ours] == [
        (each["name"], each["ticks"], each["same"]) for each in theirs
    ]
    one, other = compared(tmp_path / "framed"), compared(tmp_path / "plain")
    assert one["variants"] == other["variants"]
    assert one["calibration"] == other["calibration"]


def test_framed_signals_fold_to_what_plain_signals_fold_to(front: Front, tmp_path: Path) -> None:
    variants = ("replay", "run", "--policy", "lp", "--policy", "proportional:k=0.3", "--processes", 1)
    framed, plain = signalled(FramedRun(front), tmp_path / "f"), signalled(PlainRun(), tmp_path / "p")
    ours = played(*variants, "--dir", framed, "--out", tmp_path / "framed", *asked(front))
    played(*variants, "--dir", plain, "--out", tmp_path / "plain")
    assert ours[0]["ticks"] > 0
    assert compared(tmp_path / "framed")["variants"] == compared(tmp_path / "plain")["variants"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_shadow_over_framed_history_is_compared(
    front: Front, framed: Path, plain: Path, processes: int, tmp_path: Path
) -> None:
    command = ("replay", "compare", "--live-vs-shadow", "--processes", processes)
    ours = played(*command, "--dir", framed, "--out", tmp_path / "framed", *asked(front))
    played(*command, "--dir", plain, "--out", tmp_path / "plain")
    assert [each["ticks"] for each in ours] == [TICKS, TICKS]
    assert compared(tmp_path / "framed")["variants"] == compared(tmp_path / "plain")["variants"]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    "command", [("verify",), ("run", "--policy", "lp", "--out", "o"), ("compare", "--live-vs-shadow", "--out", "o")]
)
def test_a_registry_that_is_away_ends_each_command_with_its_address(
    framed: Path, command: tuple[str, ...], processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    away = ("--set", f"registry.url={NOWHERE}", "--set", 'registry.options."max.retries"=0')
    assert NOWHERE in refused("replay", *command, "--dir", framed, "--processes", processes, *away)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_address_that_is_none_is_bad_input(framed: Path, processes: int) -> None:
    told = refused(
        "replay", "verify", "--dir", framed, "--processes", processes, "--set", "registry.url=gopher://there"
    )
    assert "registry.url is 'gopher://there'" in told


def test_without_a_registry_nothing_is_compared_and_what_is_missing_is_told(
    front: Front, framed: Path, tmp_path: Path
) -> None:
    out = ("--policy", "lp", "--out", tmp_path / "o", "--processes", 1)
    told = refused("replay", "run", "--dir", framed, *out)
    assert "lp could decide nothing at any tick of the range" in told
    assert "no registry is configured" in told
    assert not (tmp_path / "o" / "report.html").exists()
    out = ("--policy", "lp", "--out", tmp_path / "p", "--processes", 1)
    told = refused("replay", "run", "--dir", signalled(FramedRun(front), tmp_path / "signals"), *out)
    assert "nothing could be played" in told
    assert "no registry is configured" in told


def test_a_record_that_cannot_be_read_is_told_on_standard_error_and_in_the_report(tmp_path: Path) -> None:
    torn = PlainRun()
    folder = written(torn, tmp_path / "torn", lambda each: each.append((TABLE["state.demand"].name, 0), b"k", b"what"))
    result = run("replay", "run", "--policy", "lp", "--dir", folder, "--out", tmp_path / "o", "--processes", 1)
    assert result.exit_code == 0, result.output + repr(result.exception)
    assert "UNREADABLE" in result.stderr
    assert any(note.startswith("UNREADABLE") for note in compared(tmp_path / "o")["notes"])
