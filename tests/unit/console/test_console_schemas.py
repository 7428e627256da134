"""What the API gives is what is published: each answer is valid by its schema, and no schema loses a field."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastjsonschema
import orjson
import pytest

from console_inputs import Town, now_ms, settled_desk
from headrace.infra.console.outputs import CONSOLE_OUTPUTS, console_schema
from headrace.schemas.ids import RouteKey
from headrace.schemas.plain import to_plain

FOLDER = Path(__file__).parents[3] / "infra" / "json-schemas"


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    town = Town()
    desk = settled_desk(town)
    found = {
        "console-status": desk.status(now_ms()),
        "console-overview": desk.overview(None),
        "console-engines": desk.engine_table(None),
        "console-engine": desk.engine_card(town.names[0], None),
        "console-flows": desk.flow_map(None, "site", 5, None),
        "console-weights": desk.weight_rows(None, None, None, 10),
        "console-history": desk.weight_history(RouteKey("cluster-000", "model-0", "default")),
        "console-totals": desk.totals_series(),
        "console-decisions": desk.decision_log(None, 5, quiet=True),
    }
    return {name: json.loads(orjson.dumps(to_plain(answer))) for name, answer in found.items()}


def published(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8")))


@pytest.mark.parametrize("name", sorted(CONSOLE_OUTPUTS))
def test_each_answer_is_valid_by_its_published_schema(name: str, answers: Mapping[str, Any]) -> None:
    validate = fastjsonschema.compile(published(name))
    validate(answers[name])
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate({key: value for key, value in answers[name].items() if key != min(answers[name])})


@pytest.mark.parametrize("name", sorted(CONSOLE_OUTPUTS))
def test_the_published_schema_is_the_one_that_is_printed(name: str) -> None:
    assert published(name) == console_schema(name), f"write console_schema({name!r}) to {FOLDER}"
