import pytest

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import RouteKey, identifier_problem, is_identifier, link_key, parse_route_key


@pytest.mark.parametrize("value", ["a", "us-east-1/vllm-a", "Qwen/Qwen3.5", "user@host:8000", "x" * 200])
def test_real_names_are_identifiers(value: str) -> None:
    assert is_identifier(value)


@pytest.mark.parametrize("value", ["", "x" * 201, "a|b", "a b", "a\n", "größe", "!commit"])
def test_what_could_break_a_key_is_refused_and_named(value: str) -> None:
    assert not is_identifier(value)
    problem = identifier_problem("engine_id", value)
    assert problem is not None
    assert "engine_id" in problem


def test_a_route_key_splits_in_exactly_one_way() -> None:
    key = RouteKey("B", "meta/llama", "batch")
    assert key.encode() == b"B|meta/llama|batch"
    assert parse_route_key(key.encode()) == key
    assert link_key("B", "eu-west-1") == b"B|eu-west-1"


@pytest.mark.parametrize("key", [b"", b"a|b", b"a|b|c|d", b"a||c", b"\xff|b|c", b"!commit"])
def test_a_key_that_is_no_route_is_refused_with_its_bytes(key: bytes) -> None:
    with pytest.raises(InvalidInputError, match="expected cluster"):
        parse_route_key(key)


def test_an_invalid_input_error_lists_all_its_problems() -> None:
    error = InvalidInputError("fleet.toml", ("site is missing", "capacity is -1; at least 0"))
    assert str(error) == "fleet.toml: 2 problems\n  - site is missing\n  - capacity is -1; at least 0"
