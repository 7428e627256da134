"""Workers of one host, kept running: with children and a clock of the test's own."""

import pytest

from headrace.infra.processes.supervise import GROWN_UP_S, MOST_IN_A_ROW, MOST_WAIT_S, Life, SuperviseError, supervise


class Said:
    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, object]]] = []

    def info(self, event: str, **fields: object) -> None:
        self.said.append((event, fields))

    warning = info


class Clock:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds


class Mortal:
    """A child that ends with a status at given ages, one life after the other, and then lives on."""

    def __init__(self, clock: Clock, *ages_s: float, status: int = 1, last: int = 0) -> None:
        self._clock, self._ages_s, self._status, self._last = clock, list(ages_s), status, last
        self.starts_s: list[float] = []
        self.asked = 0

    @property
    def exit_status(self) -> int | None:
        lives = len(self.starts_s)
        if self.asked:
            return self._last
        if lives and lives <= len(self._ages_s):
            return self._status if self._clock.at_s >= self.starts_s[-1] + self._ages_s[lives - 1] else None
        return None

    def start(self) -> None:
        self.starts_s.append(self._clock.at_s)

    def stop(self, *, timeout_s: float) -> int:
        assert timeout_s > 10
        self.asked += 1
        return self._last


def run(clock: Clock, until_s: float, *children: Mortal) -> tuple[int, Said]:
    said = Said()
    status = supervise(children, said, lambda: clock.at_s >= until_s, clock.now_s, clock.sleep)
    return status, said


def test_children_that_live_are_asked_to_stop_once_each() -> None:
    clock = Clock()
    children = [Mortal(clock), Mortal(clock)]
    status, said = run(clock, 5.0, *children)
    assert status == 0
    assert [child.asked for child in children] == [1, 1]
    assert said.said == [("workers stopped", {"exit_statuses": [0, 0]})]


def test_one_that_ends_is_started_again_after_a_wait_that_doubles_and_the_others_live_on() -> None:
    clock = Clock()
    fails, lives = Mortal(clock, 0.0, 0.0, 0.0), Mortal(clock)
    _, said = run(clock, 20.0, fails, lives)
    waits = [later - earlier for earlier, later in zip(fails.starts_s, fails.starts_s[1:], strict=False)]
    assert [round(wait) for wait in waits] == [1, 2, 4]
    assert len(lives.starts_s) == 1
    assert [fields["in_s"] for event, fields in said.said if "starting it again" in event] == [1.0, 2.0, 4.0]


def test_a_life_of_a_minute_is_a_new_beginning_and_the_wait_has_a_bound() -> None:
    life = Life(0.0)
    waits = [life.died(life.started_s + 1.0) for _ in range(8)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, MOST_WAIT_S]
    assert life.died(life.started_s + GROWN_UP_S) == 1.0


def test_one_that_cannot_live_stops_them_all_and_is_named() -> None:
    clock = Clock()
    children = [Mortal(clock), Mortal(clock, *[0.0] * MOST_IN_A_ROW, status=7)]
    with pytest.raises(SuperviseError, match=r"worker 2 ended 10 times in a row .* with status 7"):
        run(clock, 1e9, *children)
    assert children[0].asked == 1


def test_the_worst_status_is_the_supervisors() -> None:
    clock = Clock()
    assert run(clock, 1.0, Mortal(clock, last=0), Mortal(clock, last=3), Mortal(clock, last=-15))[0] == 3
