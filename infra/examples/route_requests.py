"""What a gateway does with the weights: follow them in a thread, route each request in memory, report what arrived."""

import argparse
import collections
import functools
import sys
import time

from headrace.dataplane import Outcome, Router
from headrace.dataplane.feed import SnapshotFeed
from headrace.dataplane.reporter import DemandReporter
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.bus.settings import KafkaSettings

CLUSTER = "frankfurt"
MODEL = "llama-3.1-8b"


def main() -> None:
    """Route some requests of as many conversations, and print where they went and why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--prefix", default="headrace.", help="topics.prefix of the configuration")
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()

    say = functools.partial(print, file=sys.stderr)  # standard output is for what was routed
    kafka = KafkaSettings(bootstrap_servers=arguments.bootstrap)
    router = Router(DataPlaneSettings(source="example-gateway"), CLUSTER)
    feed = SnapshotFeed(kafka, f"{arguments.prefix}weights", router, on_problem=say)
    reporter = DemandReporter(kafka, f"{arguments.prefix}signals.demand", router.demand, on_problem=say)
    feed.start()
    reporter.start()
    say(f"waiting for weights on {arguments.prefix}weights at {arguments.bootstrap}, at most a minute")
    waited_until = time.monotonic() + 60.0
    while router.installation is None and time.monotonic() < waited_until:
        time.sleep(0.1)  # the solver publishes once it has heard of every engine and round trip
    if router.installation is None:
        say("no weights came: do publish_signals.py, `headrace streams` and `headrace solver` run?")

    went = collections.Counter[str]()
    for number in range(arguments.count):
        now_ms = time.time_ns() // 1_000_000
        decision = router.route(MODEL, key=f"conversation-{number}", now_ms=now_ms)
        router.report(MODEL, "default", decision, now_ms=now_ms)  # what arrives is what the solver plans for
        if decision.outcome is Outcome.ROUTED:
            went[f"{decision.engine_id} ({decision.reason})"] += 1
        else:
            went[f"{decision.outcome} ({decision.reason}), retry after {decision.retry_after_s} s"] += 1
    for where, count in sorted(went.items()):
        print(f"{count:6d}  {where}")
    reporter.stop()
    feed.stop()


if __name__ == "__main__":
    main()
