"""A snapshot as a file: what is written is read back, and whatever is wrong with a file is said at once."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from dataplane_inputs import route_weights, shares, snapshot
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.plain import to_plain
from headrace.schemas.snapshot_file import dump_snapshot, parse_snapshot, read_snapshot, write_snapshot

SNAPSHOT = snapshot(
    route_weights(shares(a=3, b=1), excluded=("c",), fallback=shares(a=1, b=1)),
    route_weights({"a": 1_000_000}, cluster="B"),
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
    missing, wrong = problems(orjson.dumps(document))
    assert missing == "commit: field 'epoch' is missing"
    assert wrong.startswith("routes[1]: ")


def test_weights_changed_by_hand_are_refused_with_the_digest_they_would_need() -> None:
    route = SNAPSHOT.routes[0]
    changed = replace(SNAPSHOT, routes=(replace(route, retry_ratio=0.05), *SNAPSHOT.routes[1:]))
    (problem,) = problems(dump_snapshot(changed))
    assert problem.startswith(f"commit.digest is {SNAPSHOT.commit.digest}; the routes give ")
