"""Soak of the streams worker: a fleet at its own pace for half an hour on Apache Kafka, and what memory it takes.

    python tests/bench/soak_streams.py [--minutes 30] [--engines 200] [--broker apache]

A tenth of what is sent is refused (unknown engines, junk), engines restart with new series, so nothing may grow with
time. Memory is flat where the last third's median is within 5 % of the middle third's.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from bench_streams import signal
from streams_run import Bus, Worker, engine_spec

from headrace.infra.brokers import start_broker
from headrace.infra.provision import apply_topics
from headrace.schemas.bus.clients import producer_options
from headrace.schemas.codec import encode
from headrace.schemas.signals import EngineSignals, Vantage
from headrace.schemas.topics import FLEET, SIGNALS_ENGINE, TopicSettings


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def run(bus: Bus, worker: Worker, seconds: int, engines: int) -> list[float]:
    producer, dice = Producer(producer_options(bus.kafka)), np.random.default_rng(1)
    bodies = [signal("e", 1_000, dice).distributions for _ in range(100)]
    status = signal("e", 1_000, dice).status
    memory: list[float] = []
    began = time.monotonic()
    for second in range(seconds):
        now_ms = int(time.time() * 1_000)
        for i in range(engines):
            engine = f"engine-{i}" if i % 10 else f"stranger-{second}-{i}"
            body = bodies[int(dice.integers(100))]
            each = EngineSignals(engine, "soak", Vantage.ENGINE, now_ms - 1_000, now_ms, body, status)
            producer.produce(bus.name(SIGNALS_ENGINE), key=each.key, value=encode(each) if i % 50 else b"junk")
        producer.poll(0)
        if second % 10 == 0:
            memory.append(resident_mb(worker.process.pid))
            if second % 300 == 0:
                print(f"{second:6} s {memory[-1]:7.1f} MB", flush=True)
        assert worker.process.poll() is None, worker.said()[-2_000:]
        time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    producer.flush(60)
    return memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--engines", type=int, default=200)
    parser.add_argument("--broker", default="apache")
    given = parser.parse_args()
    with start_broker(given.broker) as broker, tempfile.TemporaryDirectory() as folder:
        topics = TopicSettings(prefix="soak.")
        apply_topics(broker.kafka, topics)
        bus = Bus(broker.kafka, topics)
        for i in range(given.engines):
            spec = engine_spec(f"engine-{i}")
            bus.send(FLEET, spec.key, encode(spec))
        bus.flush()
        # A long session: a machine that does other work beside this must not end the worker for it.
        worker = Worker(bus, Path(folder), "--log-level", "error", **{"streams.session_timeout_ms": "60000"})
        try:
            time.sleep(20)
            memory = run(bus, worker, int(given.minutes * 60), given.engines)
            third = len(memory) // 3
            middle, last = statistics.median(memory[third : 2 * third]), statistics.median(memory[2 * third :])
            began = time.monotonic()
            status = worker.stop()
            print(f"memory: first {memory[0]:.1f} MB, middle third {middle:.1f} MB, last third {last:.1f} MB,")
            print(f"peak {max(memory):.1f} MB; last / middle {last / middle:.3f} (bar 1.05)")
            print(f"stop: status {status} in {time.monotonic() - began:.2f} s")
        finally:
            worker.kill()


if __name__ == "__main__":
    main()
