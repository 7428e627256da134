"""What `headrace signals publish` runs: scrape, publish, wait; what changes is said once."""

import sys
import time

import click

from headrace.infra.configuration.config import Config
from headrace.infra.kafka_edge import require_topics
from headrace.infra.log.lines import open_log
from headrace.infra.metrics import counts_of
from headrace.infra.processes.stopping import stop_on_signals
from headrace.infra.signal_line import json_line
from headrace.schemas.bus.publisher import Dropped, Publisher
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, topic_table
from headrace.streams.publish.metrics import TABLE, count_scrape
from headrace.streams.publish.scrape import Endpoint

STEP_S = 0.1
SAY_AGAIN_S = 60.0


def print_once(endpoint: Endpoint) -> None:
    """Print what one scrape would publish; exit status 1 where it gives nothing."""
    scraped = endpoint.scrape()
    for signal in scraped.signals:
        click.echo(json_line(signal))
    for rejected in scraped.translated.rejects[:10]:
        click.echo(f"headrace: refused: {rejected.detail}", err=True)
    if scraped.problem:
        click.echo(f"headrace: {scraped.problem}", err=True)
        sys.exit(1)


def run_sidecar(config: Config, endpoint: Endpoint, every_s: float) -> None:
    """Publish until stopped. Logs as log.format says."""
    stopped, log = stop_on_signals(), open_log(config)
    counts = counts_of("sidecar", TABLE, config.sidecar)
    table = topic_table(config.topics)
    topics = {table[role].record: table[role].name for role in (SIGNALS_ENGINE, SIGNALS_DEMAND)}
    require_topics(config.kafka, topics.values())
    publisher = Publisher(config.kafka, on_error=lambda sentence: log.warning("the client reports", reason=sentence))
    said, said_s, next_s = "", 0.0, time.monotonic()
    while not stopped():
        scraped = endpoint.scrape()
        word, dropped = scraped.problem or "publishing", 0
        for signal in scraped.signals:
            done = publisher.publish(topics[signal.kind], signal.key, signal.value)
            if isinstance(done, Dropped):
                word, dropped = done.sentence, dropped + 1
        count_scrape(counts, scraped, dropped, time.time_ns() // 1_000_000)
        now_s = time.monotonic()
        if word != said or (word != "publishing" and now_s - said_s > SAY_AGAIN_S):
            rejects = [each.detail for each in scraped.translated.rejects[:3]]
            say = log.info if word == "publishing" else log.warning
            say(word, readings=len(scraped.translated.readings), **({"rejects": rejects} if rejects else {}))
            said, said_s = word, now_s
        # A slow scrape is not made up for by scraping faster.
        next_s = max(next_s + every_s, now_s)
        while not stopped() and time.monotonic() < next_s:
            time.sleep(min(STEP_S, max(0.0, next_s - time.monotonic())))
    lost = publisher.close()
    log.info("stopped", undelivered=lost)
