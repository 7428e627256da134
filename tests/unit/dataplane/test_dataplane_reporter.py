"""The reporter's clock, and what is said of its steps; Kafka is left out."""

from typing import Any

import pytest

from headrace.dataplane import reporter as module
from headrace.dataplane.demand import DemandCounter
from headrace.dataplane.reporter import SETTLE_MS, AnchoredClock, DemandReporter
from headrace.schemas.bus.publisher import Published
from headrace.schemas.bus.settings import KafkaSettings

WALL_MS = 1_700_000_000_000


class Clocks:
    """Two clocks that a test sets."""

    def __init__(self) -> None:
        self.wall_ms, self.monotonic_ms = WALL_MS, 5_000

    def run(self, ms: int, step_ms: int = 0) -> None:
        self.wall_ms += ms + step_ms
        self.monotonic_ms += ms


class Kept:
    """Stands in for the publisher: keeps what was published."""

    def __init__(self, *_: object, **__: object) -> None:
        self.records: list[tuple[int, int]] = []

    def publish(self, _topic: str, _key: bytes, value: bytes, timestamp_ms: int) -> Published:
        self.records.append((timestamp_ms - WALL_MS, len(value)))
        return Published()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks()
    monkeypatch.setattr(module, "_wall_ms", lambda: made.wall_ms)
    monkeypatch.setattr(module, "_monotonic_ms", lambda: made.monotonic_ms)
    monkeypatch.setattr(module, "Publisher", Kept)
    return made


def test_the_clock_runs_by_the_monotonic_one_and_leaves_small_steps_alone(clocks: Clocks) -> None:
    clock = AnchoredClock(1_000)
    clocks.run(500, step_ms=-900)
    assert (clock.follow(), clock.now_ms()) == (0, WALL_MS + 500)


@pytest.mark.parametrize("step_ms", [-3_600_000, -1_001, 1_001, 3_600_000])
def test_the_clock_is_anchored_anew_once_where_the_wall_steps(clocks: Clocks, step_ms: int) -> None:
    clock = AnchoredClock(1_000)
    clocks.run(500, step_ms=step_ms)
    assert clock.now_ms() == WALL_MS + 500
    assert (clock.follow(), clock.now_ms()) == (step_ms, WALL_MS + 500 + step_ms)
    assert clock.follow() == 0


def test_a_step_is_said_with_what_was_dropped_and_reports_go_on(clocks: Clocks) -> None:
    said: list[str] = []
    counter = DemandCounter("A", "gateway-1")
    reporter = DemandReporter(KafkaSettings(), "demand", counter, said.append)
    clocks.run(SETTLE_MS)
    for step_ms in (0, 0, -600_000, 0):
        counter.count("m", "default", clocks.wall_ms)
        clocks.run(1_000, step_ms=step_ms)
        reporter._publish_closed()
    published: Any = reporter._publisher
    assert [end_ms for end_ms, _ in published.records] == [1_000, 2_000, 2_000 - 600_000 + 2_000]
    (sentence,) = said
    assert sentence.startswith("demand: the clock stepped by -600000 ms")
    assert sentence.endswith("1 requests belong to no period")
