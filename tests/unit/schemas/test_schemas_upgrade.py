"""While two versions run: what the version before wrote is installed, and the solver that follows it goes on."""

import copy
import io
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from headrace.schemas import codec
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.avro_schemas import by_fingerprint, fingerprint, parse, raw_schema
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.codec import SINGLE_OBJECT_MARKER, encode
from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.digest import add, summand, to_text
from headrace.schemas.plain import to_plain
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import RouteWeights, Snapshot
from headrace.solver.core.tick import TickStamp, solve_tick
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from solver_problems import engine, problem, row


def schema_before() -> dict[str, Any]:
    """RouteWeights as a version before might have had it: without a field that is nullable today."""
    old: dict[str, Any] = copy.deepcopy(dict(raw_schema("RouteWeights")))
    old["fields"] = [field for field in old["fields"] if field["name"] != "marginal_ms"]
    return old


def body_before(route: RouteWeights) -> bytes:
    out, plain = io.BytesIO(), to_plain(route)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema_before()), plain)
    return out.getvalue()


def written_before(snapshot: Snapshot) -> list[RawRecord]:
    """Give the records of a snapshot as the version before would have written it, its digest too."""
    prefix = SINGLE_OBJECT_MARKER + fingerprint(schema_before())
    bodies = [(route.key, body_before(route)) for route in snapshot.routes]
    total = 0
    for key, body in bodies:
        total = add(total, summand(key, body))
    commit = replace(snapshot.commit, digest=to_text(total))
    values = [*((key, prefix + body) for key, body in bodies), (commit.key, encode(commit))]
    return [RawRecord("weights", 0, offset, 0, key, value) for offset, (key, value) in enumerate(values)]


@pytest.fixture
def knows_both(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**by_fingerprint(), fingerprint(schema_before()): parse(schema_before())}
    monkeypatch.setattr(codec, "by_fingerprint", lambda: known)


def snapshot(version: int = 1) -> Snapshot:
    made = problem([row("c1", 4.0), row("c2", 3.0)], [engine("e1"), engine("e2", "s2")], 5.0)
    return solve_tick(made, None, SolverSettings(), Glop(), TickStamp(1, version, 500 * version)).snapshot


@pytest.mark.usefixtures("knows_both")
def test_a_snapshot_of_the_version_before_is_proved_by_the_bytes_that_it_was_written_in() -> None:
    assembler = SnapshotAssembler()
    *_, last = [assembler.offer(record) for record in written_before(snapshot())]
    assert isinstance(last, Assembled)
    assert [r.marginal_ms for r in last.snapshot.routes] == [None, None]


@pytest.mark.usefixtures("knows_both")
def test_a_solver_that_follows_one_of_the_version_before_publishes_at_once() -> None:
    assembler = SnapshotAssembler()
    *_, last = [assembler.offer(record) for record in written_before(snapshot())]
    assert isinstance(last, Assembled)
    made = problem([row("c1", 4.0), row("c2", 3.0)], [engine("e1"), engine("e2", "s2")], 5.0)
    tick = solve_tick(made, last.snapshot, SolverSettings(), Glop(), TickStamp(2, 2, 1_000))
    assert check_snapshot(tick.snapshot, last.snapshot) == ()
    follows = [*tick.snapshot.routes, tick.snapshot.commit]
    *_, installed = [
        assembler.offer(RawRecord("weights", 0, 10 + i, 0, record.key, encode(record)))
        for i, record in enumerate(follows)
    ]
    assert isinstance(installed, Assembled)
    assert installed.snapshot == tick.snapshot


def test_a_reader_of_the_version_before_refuses_what_it_has_no_schema_of_so_readers_go_first() -> None:
    (first, *_) = written_before(snapshot())
    refused = codec.decode(RouteWeights, first.value)
    assert not isinstance(refused, RouteWeights)
    assert refused.reason is RejectReason.UNKNOWN_SCHEMA
