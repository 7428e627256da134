"""What a sidecar (`headrace signals publish`) counts: served where `sidecar.metrics_port` says.

`result` is PUBLISHED, or FAILED where a scrape gave nothing to publish; `reason` a word of `RejectReason`.
"""

from typing import Final

from headrace.schemas.metric_table import Counts, Metric
from headrace.streams.publish.scrape import Scraped

TABLE: Final = (
    Metric("scrapes_total", "counter", ("result",), "Scrapes of the engine by what came of them"),
    Metric("scrape_timestamp_seconds", "gauge", (), "When a scrape last gave something to publish"),
    Metric("readings_total", "counter", (), "Readings that the mapping could use"),
    Metric("signals_total", "counter", (), "Signals handed to the Kafka client"),
    Metric("rejects_total", "counter", ("reason",), "Parts of scrapes that were refused"),
    Metric("dropped_total", "counter", (), "Signals that the Kafka client did not take"),
)
"""Every metric there is: the page that documents them, the dashboards and the alerts are checked against this."""


def count_scrape(counts: Counts, scraped: Scraped, dropped: int, now_ms: int) -> None:
    """Count one scrape; `dropped` of its signals were not taken."""
    counts.add("scrapes_total", 1, "FAILED" if scraped.problem else "PUBLISHED")
    if not scraped.problem:
        counts.show("scrape_timestamp_seconds", now_ms / 1000)
    counts.add("readings_total", len(scraped.translated.readings))
    counts.add("signals_total", len(scraped.signals) - dropped)
    counts.add("dropped_total", dropped)
    for rejected in scraped.translated.rejects:
        counts.add("rejects_total", 1, rejected.reason.value)
