"""What a bridge counts: served where `bridge.metrics_port` says, by `headrace.infra.metrics`.

Brought up to date with each report (`bridge.report_ms`), so that it costs records nothing. `source` is the name under
`[bridge.sources]`, `reason` a word of `RejectReason`.
"""

from typing import Final

from headrace.schemas.metric_table import Counts, Metric
from headrace.streams.bridge.tally import Tally

TABLE: Final = (
    Metric("records_total", "counter", (), "Records read from the sources"),
    Metric("points_total", "counter", (), "Points that were in them"),
    Metric("readings_total", "counter", (), "Readings of points that the mappings could use"),
    Metric("signals_total", "counter", (), "Signals published"),
    Metric("unmatched_total", "counter", (), "Points whose name no mapping knows"),
    Metric("rejects_total", "counter", ("reason",), "Parts of records that were refused"),
    Metric("folded_total", "counter", (), "Readings of series beyond max_series, left out"),
    Metric("dead_letters_total", "counter", (), "Records written to the dead letters, whole or for a part of them"),
    Metric("dead_letters_left_out_total", "counter", (), "Records refused in part that were too many to write down"),
    Metric("commit_failures_total", "counter", (), "Offsets that were not committed: what they stand for comes again"),
    Metric("lag_records", "gauge", ("source",), "Records of the owned partitions that are not read yet"),
    Metric("partitions", "gauge", ("source",), "Owned partitions"),
    Metric("report_timestamp_seconds", "gauge", (), "When these were brought up to date"),
)
"""Every metric there is: the page that documents them, the dashboards and the alerts are checked against this."""


def count_tally(counts: Counts, tally: Tally) -> None:
    """Count one period."""
    for name, count in (
        ("records_total", tally.records),
        ("points_total", tally.points),
        ("readings_total", tally.readings),
        ("signals_total", tally.published),
        ("unmatched_total", tally.unmatched.total()),
        ("folded_total", tally.folded.total()),
        ("dead_letters_total", tally.letters),
        ("dead_letters_left_out_total", tally.letters_left_out),
    ):
        counts.add(name, count)
    for reason, count in tally.reasons.items():
        counts.add("rejects_total", count, reason.value)
