"""Scripts: what happens when, as text."""

import pytest

from headrace.infra.fleet import commands as do
from headrace.infra.fleet.scenarios import load_scenario, scenario_names
from headrace.infra.fleet.script import Names, Timed, parse_duration_s, parse_script
from headrace.schemas.errors import InvalidInputError

NAMES = Names(["engine-a", "engine-b"], ["cluster-b"])


def test_a_script_gives_its_commands_by_time_and_at_one_time_in_the_order_of_the_text() -> None:
    text = """
    # a comment
    t=1m10s surge cluster-b 1.5   # and another
    t=20s kill engine-b
    t=20s phase dead
    t=500ms replicas engine-a 3
    """
    assert parse_script(text, NAMES) == (
        Timed(0.5, do.Replicas("engine-a", 3)),
        Timed(20.0, do.Kill("engine-b")),
        Timed(20.0, do.Phase("dead")),
        Timed(70.0, do.Surge("cluster-b", 1.5)),
    )


@pytest.mark.parametrize(
    ("line", "command", "sentence"),
    [
        ("kill engine-a", do.Kill("engine-a"), "engine-a killed"),
        ("revive engine-a", do.Revive("engine-a"), "engine-a comes back"),
        ("restart engine-a", do.Restart("engine-a"), "engine-a restarts"),
        ("silence engine-a", do.Silence("engine-a"), "engine-a publishes nothing"),
        ("heal engine-a", do.Heal("engine-a"), "engine-a healed"),
        ("slow engine-a 3", do.Slow("engine-a", 3.0), "engine-a slow, x3"),
        ("errors engine-a 0.25", do.Errors("engine-a", 0.25), "engine-a answers 25% with errors"),
        ("replicas engine-a 1", do.Replicas("engine-a", 1), "engine-a scaled to 1 replica"),
        ("surge cluster-b 1.5", do.Surge("cluster-b", 1.5), "cluster-b surges, x1.5"),
        ("surge cluster-b 1", do.Surge("cluster-b", 1.0), "cluster-b at its normal rate"),
        ("phase x", do.Phase("x"), "phase x"),
    ],
)
def test_each_command_is_read_and_said(line: str, command: do.Command, sentence: str) -> None:
    assert parse_script(f"t=1 {line}", NAMES) == (Timed(1.0, command),)
    assert command.sentence == sentence


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1m30s", 90.0), ("2m", 120.0), ("1500ms", 1.5), ("0.5s", 0.5)]
)
def test_times_are_read_in_each_way_of_writing_them(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1h", "s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected 90"):
        parse_duration_s(text)


def test_all_that_is_wrong_is_said_at_once_with_its_line() -> None:
    text = """t=1 explode engine-a
t=2 kill engine-z
t=3 surge cluster-a 2
t=4 errors engine-a 2
t=5 slow engine-a nan
t=6 replicas engine-a -1
t=7 kill
t=8 phase a|b
kill engine-a
t=soon kill engine-a"""
    with pytest.raises(InvalidInputError) as raised:
        parse_script(text, NAMES)
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [f"line {n}" for n in range(1, 11)]
    assert "known are engine-a, engine-b" in raised.value.problems[1]
    assert "0 to 1" in raised.value.problems[3]


def test_every_scenarios_own_script_can_be_read() -> None:
    for name in scenario_names():
        scenario = load_scenario(name)
        assert scenario.name == name
        assert parse_script(scenario.default_script, scenario.names)


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="three-regions"):
        load_scenario("one-region")
