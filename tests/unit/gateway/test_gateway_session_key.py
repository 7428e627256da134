"""Which requests belong together."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.infra.gateway.core.generation import Endpoint, Generation, read_generation
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.core.session_key import MAX_KEY_CHARS, PrefixRule, session_key

RULE = PrefixRule(shared_chars=0, prefix_chars=8)
SYSTEM = {"role": "system", "content": "You are everyone's assistant."}


def user(content: Any) -> dict[str, Any]:  # noqa: ANN401 - contents are of many shapes
    return {"role": "user", "content": content}


def key(
    endpoint: Endpoint = Endpoint.CHAT,
    header: str | None = None,
    tenant: str = "t",
    rule: PrefixRule = RULE,
    **body: Any,  # noqa: ANN401 - members of any shape
) -> str | None:
    return session_key(Generation(endpoint, "m", stream=False, body=body), header, tenant, rule)


def test_a_header_is_the_key_itself_so_that_headrace_route_can_be_asked_with_it() -> None:
    assert key(header="session-7", user="u", messages=[user("a")]) == "session-7"


def test_after_it_prompt_cache_key_then_user_kept_apart_by_tenant() -> None:
    assert key(prompt_cache_key="c", user="u") == "t|prompt_cache_key|c"
    assert key(user="u", messages=[user("a")]) == "t|user|u"
    assert key(user="u") != key(user="u", tenant="other")


def test_an_empty_or_wrong_typed_member_is_no_key() -> None:
    assert key(user="", prompt_cache_key=7) is None


def test_a_conversation_is_its_first_message_after_the_shared_prompt() -> None:
    first = key(messages=[SYSTEM, user("a")])
    assert first is not None
    assert key(messages=[SYSTEM, user("a"), {"role": "assistant", "content": "b"}, user("c")]) == first
    assert key(messages=[user("a")]) == first
    assert key(messages=[SYSTEM, {"role": "developer", "content": "x"}, user("a")]) == first
    assert key(messages=[SYSTEM, user("b")]) != first
    assert key(messages=[SYSTEM, user("a")], tenant="other") != first


def test_parts_with_images_tell_conversations_apart_too() -> None:
    def image(url: str) -> dict[str, Any]:
        return user([{"type": "image_url", "image_url": {"url": url}}])

    assert key(messages=[image("a")]) == key(messages=[image("a"), user("more")]) != key(messages=[image("b")])


@pytest.mark.parametrize("messages", [None, [], [SYSTEM], ["text"], [user(None)], [user("")], [user([])], 7])
def test_no_message_of_the_users_own_is_no_key(messages: object) -> None:
    assert key(messages=messages) is None


def test_a_completions_key_is_the_prefix_after_the_shared_one() -> None:
    def of(prompt: object, shared: int = 0) -> str | None:
        return key(Endpoint.COMPLETIONS, prompt=prompt, rule=PrefixRule(shared, 8))

    assert of("12345678 tail") == of("12345678 other") != of("1234567X")
    assert of("SHARED-own", 7) == of("ANOTHERown", 7) != of("SHARED-new", 7)
    assert of("SHARED", 7) is None
    assert of(["first", "second"]) == of("first")
    assert of([1, 2, 3]) == of([[1, 2, 3], [9]])
    assert of([1, 2, 3]) != of([1, 2, 4])
    assert of(None) is None


def test_embeddings_have_none_unless_given() -> None:
    assert key(Endpoint.EMBEDDINGS, input="text") is None
    assert key(Endpoint.EMBEDDINGS, input="text", user="u") == "t|user|u"


def test_keys_are_bounded() -> None:
    assert key(header="x" * 5_000) == "x" * MAX_KEY_CHARS
    assert len(key(user="x" * 5_000) or "") < MAX_KEY_CHARS + 20


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(endpoint=st.sampled_from(Endpoint), messages=json_values, prompt=json_values, user=json_values)
def test_any_json_gives_a_key_or_none(endpoint: Endpoint, messages: object, prompt: object, user: object) -> None:
    found = key(endpoint, messages=messages, prompt=prompt, user=user)
    assert found is None or found.startswith("t|")


def test_a_body_is_read_for_model_and_stream_only() -> None:
    read = read_generation(Endpoint.CHAT, orjson.dumps({"model": "org/model-8b", "stream": True, "new_member": [1]}))
    assert isinstance(read, Generation)
    assert (read.model, read.stream) == ("org/model-8b", True)
    assert read.messages() == ()


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"{", 400, "no JSON"),
        (b"", 400, "no JSON"),
        (b"\xff\xfe", 400, "no JSON"),
        (b"[" * 100_000, 400, "no JSON"),
        (b"[]", 400, "no JSON object"),
        (b"{}", 400, "model is missing"),
        (b'{"model": 7}', 400, "model is missing"),
        (b'{"model": "a|b"}', 404, "'a|b' does not exist"),
        (b'{"model": ""}', 404, "does not exist"),
        (b'{"model": "%s"}' % (b"x" * 500), 404, "x" * 80 + "'"),
    ],
)
def test_a_body_that_cannot_be_routed_is_refused_with_the_reason(content: bytes, status: int, said: str) -> None:
    refused = read_generation(Endpoint.CHAT, content)
    assert isinstance(refused, Refusal)
    assert refused.status == status
    assert said in refused.message
