"""What a streams worker counts: served where `streams.metrics_port` says, by `headrace.infra.metrics`.

`topic` is the signals' role in the topic table (`signals.engine`, `signals.demand`, `signals.network`), whatever the
topic is called; `outcome` and `reason` are the words of `Outcome` and `RejectReason`; `step` is fold or deliver.
"""

from collections.abc import Mapping
from typing import Final

from headrace.schemas.metric_table import Counts, Metric
from headrace.streams.core.keyed import Folded

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIGNALS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)

TABLE: Final = (
    Metric("signals_total", "counter", ("topic", "outcome"), "Signals folded, by what became of them"),
    Metric("refused_total", "counter", ("topic", "reason"), "Signals written to the dead letters, by reason"),
    Metric("states_total", "counter", ("topic",), "States written"),
    Metric("batch_seconds", "histogram", ("topic", "step"), "Time of a batch: folding, delivery to Kafka", _SECONDS),
    Metric("batch_signals", "histogram", ("topic",), "Signals in a batch", _SIGNALS),
    Metric("watermark_timestamp_seconds", "gauge", ("topic",), "Newest event time of the signals in the last batch"),
    Metric("watermark_delay_seconds", "gauge", ("topic",), "Wall clock less the newest event time, at the last batch"),
    Metric(
        "lag_signals", "gauge", ("topic",), "Signals in the owned partitions that are not folded yet; asked every 5 s"
    ),
    Metric("partitions", "gauge", ("topic",), "Owned partitions"),
    Metric("assignments_total", "counter", (), "Times that the group gave this worker its partitions"),
    Metric("recovery_seconds", "gauge", (), "From the last assignment to the first signal that could be folded"),
    Metric("read_again_total", "counter", ("topic",), "Signals read again behind what was committed"),
    Metric("series_held", "gauge", ("topic",), "Cumulative series that are held for the differences to come"),
    Metric("engines_known", "gauge", (), "Engines in the fleet topic"),
)
"""Every metric there is: the page that documents them, the dashboards and the alerts are checked against this."""


def count_batch(counts: Counts, topic: str, signals: int, folded: Folded, took_s: Mapping[str, float]) -> None:
    """Count a batch that was acknowledged; `took_s` by step."""
    for outcome, count in folded.outcomes.items():
        counts.add("signals_total", count, topic, str(outcome))
    for letter in folded.rejected:
        counts.add("refused_total", 1, topic, str(letter.reason))
    counts.add("states_total", len(folded.states), topic)
    for step, seconds in took_s.items():
        counts.observe("batch_seconds", seconds, topic, step)
    counts.observe("batch_signals", signals, topic)
