"""Publishes, once a second, what the engines and the gateway of a small site would: enough for weights to come out.

All three kinds are needed: engine signals say who is there and how quick, demand says what is asked for, and a network
probe says how far each site is. An engine is used once it has been heard of and a round trip to its site is known.
"""

import argparse
import random
import time

from headrace.schemas.bus.publisher import Publisher
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.histogram import pack
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)

ENGINES = ("engine-a", "engine-b")  # as in fleet.toml beside this file
SITE = "eu-central-1"
CLUSTER = "frankfurt"
MODEL = "llama-3.1-8b"


def distribution(metric: Metric, observed_s: list[float]) -> Distribution:
    """Pack what was observed in one period into the fixed histogram layout; the sum stays exact."""
    zeros, first_bucket, counts = pack(observed_s)
    return Distribution(
        MODEL, metric, len(observed_s), sum(observed_s), min(observed_s), max(observed_s), zeros, first_bucket, counts
    )


def engine_signals(engine_id: str, now_ms: int) -> EngineSignals:
    """What one engine says of its last second."""
    ttft = distribution(Metric.TTFT, [random.uniform(0.03, 0.06) for _ in range(40)])
    tbot = distribution(Metric.TBOT, [random.uniform(0.008, 0.012) for _ in range(40)])
    status = EngineStatus(
        Health.HEALTHY,
        replicas_desired=4,
        replicas_ready=4,
        replicas_reporting=4,
        running=20.0,
        waiting=0.0,
        kv_usage=0.3,
    )
    return EngineSignals(engine_id, f"{engine_id}/0", Vantage.ENGINE, now_ms - 1000, now_ms, (ttft, tbot), status)


def main() -> None:
    """Publish for `--seconds`, or until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--prefix", default="headrace.", help="topics.prefix of the configuration")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    # Publisher sets what headrace's topics need: murmur2 partitioning, idempotence, acks=all.
    publisher = Publisher(KafkaSettings(bootstrap_servers=arguments.bootstrap))
    ends = time.monotonic() + arguments.seconds
    print(f"publishing {' and '.join(ENGINES)}, demand of {CLUSTER} and its round trip, each second, until Ctrl-C")
    while time.monotonic() < ends:
        now_ms = time.time_ns() // 1_000_000
        for engine_id in ENGINES:
            signals = engine_signals(engine_id, now_ms)
            publisher.publish(f"{arguments.prefix}signals.engine", signals.key, encode(signals))
        demand = Demand(
            CLUSTER, MODEL, "default", "gateway-1", now_ms - 1000, now_ms, offered=90, rejected=0, retries=0
        )
        publisher.publish(f"{arguments.prefix}signals.demand", demand.key, encode(demand))
        probe = NetworkProbe(CLUSTER, SITE, "gateway-1", now_ms, rtt_s=0.002)
        publisher.publish(f"{arguments.prefix}signals.network", probe.key, encode(probe))
        left = publisher.flush(5.0)
        if left:
            print(f"{left} records are not delivered: does {arguments.bootstrap} answer, and are the topics there?")
        time.sleep(1.0)


if __name__ == "__main__":
    main()
