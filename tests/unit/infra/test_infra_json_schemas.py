"""What `--json` prints is what is published: each output is valid by its schema, and no schema loses a field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastjsonschema
import orjson
import pytest
from click.testing import CliRunner

from doctor_system import healthy
from headrace.infra.cli import headrace
from headrace.infra.command_line.json_schemas import OUTPUTS, schema_named
from headrace.infra.dead_letters.lines import json_line as letter_line
from headrace.infra.dead_letters.summary import LetterGroup
from headrace.infra.redaction.redact import Redaction
from headrace.infra.weight_why.report import AskedWeight, weight_report
from headrace.infra.weight_why.steps import WeightStep
from headrace.infra.weights_tail.diff import Diff
from headrace.infra.weights_tail.fold import Shown
from headrace.infra.weights_tail.json_line import json_line
from headrace.infra.what_if.answer import what_if
from headrace.infra.what_if.edits import Asked, parse_edits
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.plain import to_plain
from headrace.schemas.weights import Protected
from headrace.solver.glop import Glop
from headrace.solver.settings import SolverSettings
from past_ticks import acted_on, solved, three_regions

FOLDER = Path(__file__).parents[3] / "infra" / "json-schemas"


def printed(name: str) -> dict[str, Any]:  # noqa: PLR0911 - one a kind
    """Give one output of each kind, as it is printed, read back."""
    problem = three_regions()
    again = acted_on(solved(problem), Protected("engine-b", "trim", 1.3, "slower"))
    before, after = again.tick.snapshot, solved(problem, again.tick.snapshot, 8).tick.snapshot
    match name:
        case "tail":
            return dict(json.loads(json_line(Shown(before, None), lambda _: True)))
        case "tail-redacted":
            return _plain(Redaction(b"s").line(Shown(before, None), lambda _: True))
        case "tail-diff":
            diff = Diff(lambda _: True, every=True)
            diff.offer(Shown(before, None))
            return _plain(diff.offer(Shown(after, before)))
        case "decisions":
            return _plain(again.tick.record)
        case "dead-letters":
            letter = DeadLetter("t", 0, 1, 2, None, b"x", RejectReason.MALFORMED, "no Avro", "streams")
            return dict(json.loads(letter_line(letter, 3)))
        case "dead-letters-summary":
            return _plain(LetterGroup("MALFORMED", "t", "streams", 3, 1, 0, 2, "no Avro"))
        case "explain" | "explain-redacted":
            steps = (WeightStep(6, 1, 0, 746_000, "cluster-b asks"),)
            report = weight_report(again, before, AskedWeight("cluster-b", "engine-b"), steps, proved=True)
            return _plain(report if name == "explain" else Redaction(b"s").report(report))
        case "doctor":
            system = healthy()
            system.missing.add("shadow")
            return _plain(system.report())
        case _:
            edits = parse_edits(Asked(replicas=("engine-b=1",)), problem)
            return _plain(what_if(again, edits, SolverSettings(), Glop(), proved=True))


def _plain(record: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(orjson.dumps(to_plain(record)))
    return found


def published(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8")))


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_each_output_is_valid_by_its_published_schema(name: str) -> None:
    validate = fastjsonschema.compile(published(name))
    found = printed(name)
    validate(found)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({key: value for key, value in found.items() if key != min(found)})


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_no_published_field_goes_or_changes(name: str) -> None:
    now, then = schema_named(name), published(name)
    lost = list(_lost(then, now, name))
    assert not lost, f"{lost}: scripts read these; after an addition, write `headrace ... --schema` to {FOLDER}"


def _lost(then: dict[str, Any], now: dict[str, Any], at: str) -> Iterator[str]:
    for key, part in then.items():
        if key in ("description", "title", "required", "enum"):
            continue
        if key not in now:
            yield f"{at}.{key}"
        elif isinstance(part, dict):
            yield from _lost(part, now[key], f"{at}.{key}")
        elif part != now[key]:
            yield f"{at}.{key}"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (("tail", "--schema"), "tail"),
        (("tail", "--schema", "--diff"), "tail-diff"),
        (("tail", "--schema", "--redact"), "tail-redacted"),
        (("tail", "decisions", "--schema"), "decisions"),
        (("tail", "--schema", "dead-letters"), "dead-letters"),
        (("dead-letters", "--schema"), "dead-letters"),
        (("dead-letters", "--summary", "--schema"), "dead-letters-summary"),
        (("dead-letters", "--schema", "--summary"), "dead-letters-summary"),
        (("explain", "--schema"), "explain"),
        (("explain", "--redact", "--schema"), "explain-redacted"),
        (("what-if", "--schema"), "what-if"),
    ],
)
def test_commands_print_the_schema_of_what_they_print(typed: tuple[str, ...], name: str) -> None:
    assert json.loads(CliRunner().invoke(headrace, typed).stdout) == schema_named(name)
