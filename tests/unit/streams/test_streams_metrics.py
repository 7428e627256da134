"""The worker's own metrics: every row of the table is there, with bounded labels, and says what happened."""

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from prometheus_client import generate_latest

from headrace.infra.ports import free_ports
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.streams import lag
from headrace.streams.core.keyed import Folded
from headrace.streams.core.window import Outcome
from headrace.streams.lag import follow_lag, lags
from headrace.streams.metrics import PREFIX, TABLE, Meter

ROLES = {"t.engine": "signals.engine", "t.demand": "signals.demand"}


def letter(reason: RejectReason) -> DeadLetter:
    return DeadLetter("t.engine", 0, 1, 2, None, b"x", reason, "why", "fold")


def value(meter: Meter, name: str, **labels: str) -> float | None:
    return meter.registry.get_sample_value(f"{PREFIX}{name}", labels)


def test_a_batch_is_counted_by_outcome_reason_step_and_size() -> None:
    meter = Meter()
    outcomes = dict.fromkeys(Outcome, 0) | {Outcome.APPLIED: 5, Outcome.LATE: 1}
    folded = Folded({b"a": b"1", b"b": b"2"}, (letter(RejectReason.NEGATIVE),) * 2, outcomes)
    meter.batch("signals.engine", 8, folded, {"fold": 0.02, "deliver": 0.3})
    assert value(meter, "signals_total", topic="signals.engine", outcome="APPLIED") == 5
    assert value(meter, "signals_total", topic="signals.engine", outcome="DUPLICATE") == 0
    assert value(meter, "refused_total", topic="signals.engine", reason="NEGATIVE") == 2
    assert value(meter, "states_total", topic="signals.engine") == 2
    assert value(meter, "batch_signals_sum", topic="signals.engine") == 8
    assert value(meter, "batch_seconds_sum", topic="signals.engine", step="deliver") == 0.3


def test_every_metric_of_the_table_can_be_set_with_its_labels_and_is_shown() -> None:
    meter = Meter()
    for row in TABLE:
        set_it: Any = meter.add if row.name.endswith("_total") else meter.show
        if row.kind.__name__ != "Histogram":
            set_it(row.name, 1, *row.labels)
    meter.batch("signals.engine", 1, Folded({}, (), {}), {"fold": 0.1})
    shown = generate_latest(meter.registry).decode()
    for row in TABLE:
        assert f"# HELP {PREFIX}{row.name.removesuffix('_total')}" in shown
        assert row.says in shown
        assert set(row.labels) <= {"topic", "outcome", "reason", "step"}, "labels of bounded values alone"


def test_they_are_served_on_their_port_until_they_are_not() -> None:
    meter, (port,) = Meter(), free_ports(1)
    end = meter.serve("127.0.0.1", port)
    try:
        meter.show("engines_known", 6)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert b"headrace_streams_engines_known 6.0" in answer.read()
        with pytest.raises(OSError, match="in use"):
            Meter().serve("127.0.0.1", port)
    finally:
        end()


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
            if len(asked) == 3:
                over.set()
            return {("t.engine", 0): 10 * len(asked)}

    meter = Meter()

    async def run() -> None:
        log: Any = Log()
        task = asyncio.create_task(follow_lag(meter, log, lambda: [("t.engine", 0)], {("t.engine", 0): 4}, ROLES))
        await asyncio.wait_for(over.wait(), 60)
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(run())
    assert (value(meter, "lag_signals", topic="signals.engine") or 0) >= 26
    assert value(meter, "partitions", topic="signals.engine") == 1
    assert value(meter, "partitions", topic="signals.demand") == 0


def test_the_page_about_the_worker_has_the_table_row_by_row() -> None:
    lines = (Path(__file__).parents[3] / "infra/docs/streams.md").read_text("utf-8").splitlines()
    for row in TABLE:
        labels = ", ".join(f"`{label}`" for label in row.labels)
        assert f"| `{row.name}` | {labels + ' ' if labels else ''}| {row.says} |" in lines
    assert sum(line.startswith("| `") for line in lines) == len(TABLE)
