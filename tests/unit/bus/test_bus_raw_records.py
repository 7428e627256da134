"""A client's message as a record: whatever its headers hold, it is one."""

from typing import TYPE_CHECKING, Any, cast

import pytest

from headrace.schemas.bus.raw_records import raw_record

if TYPE_CHECKING:
    from confluent_kafka import Message


class Said:
    """A message whose headers are as given; an exception is raised, as the client does where it decodes names."""

    def __init__(self, headers: object) -> None:
        self._headers = headers

    def topic(self) -> str:
        return "signals"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 5000

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> Any:  # noqa: ANN401 - the client's own is one of several types
        if isinstance(self._headers, Exception):
            raise self._headers
        return self._headers


def headers_of(headers: object) -> tuple[tuple[str, bytes], ...]:
    return raw_record(cast("Message", Said(headers))).headers


def test_a_header_without_a_value_has_no_bytes() -> None:
    assert headers_of([("a", None), ("b", b"x")]) == (("a", b""), ("b", b"x"))
    assert headers_of(None) == ()


@pytest.mark.parametrize(
    "error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), SystemError("with an error set")]
)
def test_headers_with_a_name_that_is_not_utf_8_are_none_and_the_record_goes_on(error: Exception) -> None:
    record = raw_record(cast("Message", Said(error)))
    assert (record.key, record.value, record.offset, record.headers) == (b"k", b"v", 7, ())
