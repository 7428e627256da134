import pytest

from headrace.schemas.avro_writer import REMEMBERED, _Strings


def test_names_that_never_come_again_are_held_up_to_a_bound_and_written_right_beyond_it() -> None:
    strings = _Strings()
    for n in range(2 * REMEMBERED + 7):
        assert strings[f"stranger-{n}"][1:] == f"stranger-{n}".encode()
        assert len(strings) <= REMEMBERED


def test_none_is_written_where_a_string_may_be_null_and_refused_where_it_may_not() -> None:
    assert _Strings(before=b"\x02", null=b"\x00")[None] == b"\x00"
    assert _Strings(before=b"\x02", null=b"\x00")["a"] == b"\x02\x02a"
    with pytest.raises(AttributeError):
        _Strings()[None]
