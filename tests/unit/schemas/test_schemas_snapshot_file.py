"""A snapshot as a file: what is written is read back, and whatever is wrong with a file is said at once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane_inputs import route_weights, shares, snapshot
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.plain import to_plain
from headrace.schemas.snapshot_file import dump_snapshot, parse_snapshot, read_snapshot, write_snapshot
from headrace.schemas.weights import Snapshot

SNAPSHOT = snapshot(
    route_weights(shares(a=3, b=1), excluded=("c",), fallback=shares(a=1, b=1)),
    route_weights({"a": 1_000_000}, cluster="B"),
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "NaN", "a|b", "LIVE"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "epoch"]), inner, max_size=2),
    max_leaves=4,
)


def problems(content: bytes) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as raised:
        parse_snapshot(content, "weights.json")
    assert "weights.json" in str(raised.value)
    return raised.value.problems


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "weights.json", SNAPSHOT)
    assert read_snapshot(tmp_path / "weights.json") == SNAPSHOT


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.json.*\n.*No such file"):
        read_snapshot(tmp_path / "nowhere.json")


def test_a_file_of_another_form_is_told_what_is_expected() -> None:
    assert problems(b"{")[0].startswith("no JSON")
    for content in (b"[]", b"{}", b'{"commit": 1, "routes": []}', b'{"commit": {}, "routes": 1}'):
        assert problems(content) == ('expected {"commit": {...}, "routes": [{...}, ...]}',)


def test_every_record_that_cannot_be_read_is_named() -> None:
    document = to_plain(SNAPSHOT)
    del document["commit"]["epoch"]
    document["routes"][1]["shed_ratio"] = "much"
    assert problems(orjson.dumps(document)) == (
        "commit.epoch is missing",
        "routes[1].shed_ratio is 'much'; a finite number",
    )


WRONG: list[tuple[str, Any, str]] = [
    ("demand_rps", "NaN", "routes[0].demand_rps is 'NaN'; a finite number"),
    ("demand_rps", True, "routes[0].demand_rps is True; a finite number"),
    ("tier", 1.5, "routes[0].tier is 1.5; an integer of 64 bits"),
    ("epoch", 2**63, f"routes[0].epoch is {2**63}; an integer of 64 bits"),
    ("model", None, "routes[0].model is None; a text"),
    ("targets", {}, "routes[0].targets is {}; a list"),
    ("excluded", [[]], "routes[0].excluded[0] is []; an object"),
]


@pytest.mark.parametrize(("field", "value", "expected"), WRONG)
def test_a_value_of_another_type_is_named_by_its_path(field: str, value: object, expected: str) -> None:
    document = to_plain(SNAPSHOT)
    document["routes"][0][field] = value
    assert problems(orjson.dumps(document)) == (expected,)


def test_all_wrong_types_are_said_at_once() -> None:
    document = to_plain(SNAPSHOT)
    document["commit"]["mode"] = "LIFE"
    document["commit"]["of_a_newer_version"] = 1
    document["routes"][0]["targets"][1]["weight_ppm"] = "1"
    document["routes"][1] = None
    mode, weight, route = problems(orjson.dumps(document))
    assert mode == "commit.mode is 'LIFE'; one of UNKNOWN, LIVE, SHADOW"
    assert weight == "routes[0].targets[1].weight_ppm is '1'; an integer of 64 bits"
    assert route == "routes[1] is None; an object"


def test_integers_that_no_record_can_hold_or_that_are_negative_are_refused() -> None:
    document = to_plain(SNAPSHOT)
    document["commit"]["epoch"] = -7
    document["routes"][0]["tier"] = 2**31
    document["routes"][1]["tier"] = -1
    said = problems(orjson.dumps(document))
    assert f"commit.epoch is -7; 0 to {2**62}" in said
    assert f"A|m|default: tier is {2**31}; 0 to {2**31 - 1}" in said
    assert f"B|m|default: tier is -1; 0 to {2**31 - 1}" in said


def places(inside: dict[Any, Any]) -> list[tuple[dict[Any, Any], Any]]:
    """Give every (container, key) of a document; a list's keys are its indices."""
    steps: list[Any] = list(range(len(inside))) if isinstance(inside, list) else list(inside)
    below = [place for key in steps if isinstance(inside[key], dict | list) for place in places(inside[key])]
    return [(inside, key) for key in steps] + below


@given(st.data())
def test_whatever_stands_in_a_file_is_refused_with_its_problems_or_is_a_snapshot(data: st.DataObject) -> None:
    document = to_plain(SNAPSHOT)
    place, key = data.draw(st.sampled_from(places(document)))
    place[key] = data.draw(JSON)
    outcome: object
    try:
        outcome = parse_snapshot(orjson.dumps(document), "weights.json")
    except InvalidInputError as error:
        outcome = error.problems
    assert isinstance(outcome, Snapshot) or outcome


def test_weights_changed_by_hand_are_refused_with_the_digest_they_would_need() -> None:
    route = SNAPSHOT.routes[0]
    changed = replace(SNAPSHOT, routes=(replace(route, retry_ratio=0.05), *SNAPSHOT.routes[1:]))
    (problem,) = problems(dump_snapshot(changed))
    assert problem.startswith(f"commit.digest is {SNAPSHOT.commit.digest}; the routes give ")
