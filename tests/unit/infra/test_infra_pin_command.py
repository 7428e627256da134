"""What is typed after `headrace pin`: one line for what is wrong, before anything is asked of Kafka."""

import pytest
from click.testing import CliRunner

from headrace.infra.cli import headrace

NOWHERE = ("--bootstrap", "127.0.0.1:1")


def told(*typed: str) -> str:
    done = CliRunner().invoke(headrace, ("pin", "tokyo", "engine-b", "--reason", "trial", *typed, *NOWHERE))
    assert done.exit_code != 0
    assert done.exception is not None
    return f"{done.output}{done.exception}"


@pytest.mark.parametrize("typed", [(), ("--share", "5%", "--least", "5%"), ("--share", "5%", "--most", "5%")])
def test_either_a_share_or_bounds_are_given(typed: tuple[str, ...]) -> None:
    assert "give --share, or --least and --most or one of them" in told(*typed)


def test_every_share_that_is_none_is_told_with_what_is_expected() -> None:
    said = told("--least", "5", "--most", "120%")
    assert "--least is '5'; expected 0% to 100%" in said
    assert "--most is '120%'; expected 0% to 100%" in said


def test_bounds_that_cross_and_a_time_that_is_too_short_are_told_at_once() -> None:
    said = told("--least", "50%", "--most", "20%", "--for", "10s")
    assert "least_ppm is 50 % and most_ppm 20 %; 0 % <= least <= most <= 100 %" in said
    assert "--for is 10 s; 1 minute to 30 days" in said
