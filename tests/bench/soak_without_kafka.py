"""The gateway under load while Kafka is away for five real minutes: what callers see of it. Not in the gate.

    python tests/bench/soak_without_kafka.py [--minutes 5] [--rps 50] [--kind apache]

Starts a broker of its own at a free port, four simulated engines and a gateway; kills the broker in mid-load, breaks
two engines meanwhile, and brings everything back. No request may fail for Kafka's absence.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))

from gateway_outage import Outage, Pace
from headrace.infra.brokers import start_broker
from headrace.schemas.topics import TopicSettings

ENGINES_OWN = ("away, two of four engines fail",)
"""Phases in which requests fail by an engine's doing: those that taught the guards."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rps", type=float, default=50.0)
    parser.add_argument("--kind", choices=["apache", "embedded"], default="apache")
    chosen = parser.parse_args()
    with (
        start_broker(chosen.kind) as broker,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        outage = Outage(broker, TopicSettings(prefix="soak.", partitions=2), Pace(5_000, 60_000, chosen.rps))
        seen = runner.run(outage.run(chosen.minutes * 60, lambda line: print(line, flush=True)))
    print("\nphase                              requests by status")
    for phase, counted in seen.statuses.items():
        print(f"  {phase:<32} {dict(counted)}")
    print(f"weights' age as reported, s: {seen.ages_s}")
    print(f"staleness as reported: {seen.staleness}")
    print(f"ejected together while FROZEN (at most 30 % of the weight while FRESH): {seen.ejected}")
    print(f"followed new weights {seen.resumed_after_s:.1f} s after Kafka was back; reports: {seen.queued}")
    failed = {p: sum(n for s, n in c.items() if s != 200) for p, c in seen.statuses.items() if p not in ENGINES_OWN}
    met = not any(failed.values())
    print(f"{'met    ' if met else 'NOT MET'} requests failed for Kafka's absence: {sum(failed.values())} = 0")


if __name__ == "__main__":
    main()
