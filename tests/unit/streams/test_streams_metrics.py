"""The streams worker's own metrics: a batch is counted by what became of it, the lag is what lies before the end."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import KafkaException

from headrace.infra.metrics import Meter
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.streams import lag
from headrace.streams.core.keyed import Folded
from headrace.streams.core.window import Outcome
from headrace.streams.lag import follow_lag, lags
from headrace.streams.metrics import TABLE, count_batch

ROLES = {"t.engine": "signals.engine", "t.demand": "signals.demand"}


def letter(reason: RejectReason) -> DeadLetter:
    return DeadLetter("t.engine", 0, 1, 2, None, b"x", reason, "why", "fold")


def value(meter: Meter, name: str, **labels: str) -> float | None:
    return meter.registry.get_sample_value(f"headrace_streams_{name}", labels)


def test_a_batch_is_counted_by_outcome_reason_step_and_size() -> None:
    meter = Meter("streams", TABLE)
    outcomes = dict.fromkeys(Outcome, 0) | {Outcome.APPLIED: 5, Outcome.LATE: 1}
    folded = Folded({b"a": b"1", b"b": b"2"}, (letter(RejectReason.NEGATIVE),) * 2, outcomes)
    count_batch(meter, "signals.engine", 8, folded, {"fold": 0.02, "deliver": 0.3})
    assert value(meter, "signals_total", topic="signals.engine", outcome="APPLIED") == 5
    assert value(meter, "signals_total", topic="signals.engine", outcome="DUPLICATE") == 0
    assert value(meter, "refused_total", topic="signals.engine", reason="NEGATIVE") == 2
    assert value(meter, "states_total", topic="signals.engine") == 2
    assert value(meter, "batch_signals_sum", topic="signals.engine") == 8
    assert value(meter, "batch_seconds_sum", topic="signals.engine", step="deliver") == 0.3


def test_the_lag_is_what_lies_between_the_next_signal_and_the_end_of_each_partition() -> None:
    ends = {("t.engine", 0): 100, ("t.engine", 1): 50, ("t.demand", 0): 7}
    assert lags(ends, {("t.engine", 0): 90, ("t.engine", 1): 51}, ROLES) == {"signals.engine": 10, "signals.demand": 0}


def test_a_broker_that_does_not_answer_leaves_the_lag_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "EVERY_S", 0.0)
    asked: list[int] = []
    over = asyncio.Event()

    class Log:
        def ends(self, _: object) -> dict[tuple[str, int], int]:
            asked.append(1)
            if len(asked) == 2:
                raise KafkaException("away")
            if len(asked) == 4:
                over.set()  # what the third answer said has been shown by now
            return {("t.engine", 0): 10 * len(asked)}

    meter = Meter("streams", TABLE)

    async def run() -> None:
        log: Any = Log()
        task = asyncio.create_task(follow_lag(meter, log, lambda: [("t.engine", 0)], {("t.engine", 0): 4}, ROLES))
        await asyncio.wait_for(over.wait(), 60)
        task.cancel()

    asyncio.run(run())
    assert (value(meter, "lag_signals", topic="signals.engine") or 0) >= 26
    assert value(meter, "partitions", topic="signals.engine") == 1
    assert value(meter, "partitions", topic="signals.demand") == 0
