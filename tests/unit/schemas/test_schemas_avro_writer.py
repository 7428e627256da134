from headrace.schemas.avro_writer import REMEMBERED, _Strings


def test_names_that_never_come_again_are_held_up_to_a_bound_and_written_right_beyond_it() -> None:
    strings = _Strings()
    for n in range(2 * REMEMBERED + 7):
        assert strings.of(f"stranger-{n}")[1:] == f"stranger-{n}".encode()
        assert len(strings._known) <= REMEMBERED
