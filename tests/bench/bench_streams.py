"""Rates of the streams: the fold alone, the worker, and bare confluent-kafka loops beside it; recovery.

    python tests/bench/bench_streams.py [--brokers embedded,apache] [--signals 40000] [--engines 500]

One bare loop does the same fold; the other is what is usually written: fastavro, and a smoothed mean per engine and
metric, written back. Bars: the worker at BAR signals a second, a refusal below the cost of a signal, recovery of 5,000
engines in RECOVERY_BAR_S.

A signal is one engine over one second: TTFT, TBOT and E2E histograms of some forty observations, and a status. The rate
of a run is its signals over the time from its first to its last state in the compacted topic, broker included. Beside
it the processor time per signal of the process that folds: on a busy machine that is the number to compare.
"""

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import orjson
from confluent_kafka import Consumer, Message, Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from streams_run import Bus, Worker, engine_spec

from headrace.infra.brokers import start_broker
from headrace.infra.provision import apply_topics
from headrace.schemas.avro_schemas import schema
from headrace.schemas.bus.clients import consumer_options, producer_options
from headrace.schemas.bus.compacted import CompactedReader
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.codec import decode, encode, must
from headrace.schemas.histogram import pack
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Distribution, EngineSignals, EngineStatus, Health, Metric, Vantage
from headrace.schemas.state import EngineState
from headrace.schemas.topics import DEAD_LETTERS, FLEET, SIGNALS_ENGINE, STATE_ENGINE, TopicSettings
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.offline import run_offline
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings

SETTINGS = StreamsSettings()
TOPICS = TopicSettings()
METRICS = (Metric.TTFT, Metric.TBOT, Metric.E2E)
START_MS = 1_700_000_000_000
BAR = 8_000
RECOVERY_BAR_S = 5.0


def signal(engine: str, end_ms: int, dice: np.random.Generator) -> EngineSignals:
    distributions = []
    for metric in METRICS:
        values = dice.lognormal(-1.0, 0.6, size=40).tolist()
        zeros, first, counts = pack(values)
        distributions.append(Distribution("m", metric, 40, sum(values), min(values), max(values), zeros, first, counts))
    status = EngineStatus(Health.HEALTHY, 2, 2, 2, 5.0, 0.0, 0.5)
    return EngineSignals(engine, "bench", Vantage.ENGINE, end_ms - 1_000, end_ms, tuple(distributions), status)


def values(count: int, engines: int) -> Iterator[tuple[bytes, bytes, int]]:
    """Signals of a fleet, second by second. A few hundred different ones, re-dated: making them is not measured."""
    dice = np.random.default_rng(1)
    templates = [signal("e", 0, dice).distributions for _ in range(200)]
    for i in range(count):
        engine, end_ms = f"engine-{i % engines}", START_MS + 1_000 * (i // engines + 1)
        status = EngineStatus(Health.HEALTHY, 2, 2, 2, 5.0, 0.0, 0.5)
        one = EngineSignals(engine, "b", Vantage.ENGINE, end_ms - 1_000, end_ms, templates[i % 200], status)
        yield engine.encode(), encode(one), end_ms


def offline(count: int, engines: int) -> None:
    records = [
        RawRecord("headrace.signals.engine", partition_of(key, 8), i, at_ms, key, value)
        for i, (key, value, at_ms) in enumerate(values(count, engines))
    ]
    began, cpu = time.perf_counter(), time.process_time()
    run_offline(records, SETTINGS, TOPICS)
    row("-", "off-line run", count, time.perf_counter() - began, time.process_time() - cpu)


_cpu_us: dict[str, float] = {}


def row(broker: str, what: str, count: int, took_s: float, cpu_s: float, more: str = "") -> None:
    rate, cpu_us = count / took_s, 1e6 * cpu_s / count
    rates = f"{rate:10,.0f} signals/s {rate * len(METRICS):10,.0f} histograms/s {cpu_us:8.0f} us of processor a signal"
    _cpu_us[f"{broker} {what}"] = cpu_us
    print(f"{broker:10}{what:34}{rates}  {more}", flush=True)


def processor_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def load(bus: Bus, count: int, engines: int) -> None:
    producer = Producer(producer_options(bus.kafka))
    for i in range(engines):
        spec = engine_spec(f"engine-{i}")
        producer.produce(bus.name(FLEET), key=spec.key, value=encode(spec))
    for key, value, at_ms in values(count, engines):
        while True:
            try:
                producer.produce(bus.name(SIGNALS_ENGINE), key=key, value=value, timestamp=at_ms)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def span_s(bus: Bus, applied: int) -> float:
    """Wait until every signal is in a state, and give the time between the first state and the last."""
    reader, stamps = CompactedReader(bus.kafka, [bus.name(STATE_ENGINE)]), []
    newest: dict[bytes, bytes | None] = {}
    deadline, done = time.monotonic() + 600, 0
    while done < applied:
        assert time.monotonic() < deadline, f"{done} of {applied} applied"
        records = reader.poll(0.5)
        for record in records:
            stamps.append(record.timestamp_ms)
            newest[record.key or b""] = record.value
        if not records and reader.caught_up:
            # How many signals of a key are in its state: its window's end counts the seconds.
            states = [must(decode(EngineState, value)) for value in newest.values()]
            done = sum((state.last_signal_ms - START_MS) // 1_000 for state in states)
    reader.close()
    return (max(stamps) - min(stamps)) / 1_000


def worker_rate(bus: Bus, kind: str, count: int, engines: int) -> None:
    load(bus, 0, engines)
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(bus, Path(folder))
        try:
            worker.wait_until("streams ready")
            before = processor_s(worker.process.pid)
            load(bus, count, engines)
            took = span_s(bus, count)
            used = processor_s(worker.process.pid) - before
            status = Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
            memory = next(line.split()[1] for line in status if line.startswith("VmHWM"))
            row(kind, "headrace streams", count, took, used, f"peak {int(memory) // 1024} MB")
            refusals(bus, kind, worker, count)
            latency(bus, kind, engines)
        finally:
            worker.kill()


def refusals(bus: Bus, kind: str, worker: Worker, count: int) -> None:
    """A producer whose records are all malformed: each must cost less than a good one, or its flood stops the fold."""
    producer, dice = Producer(producer_options(bus.kafka)), np.random.default_rng(3)
    before = processor_s(worker.process.pid)
    for _ in range(count):
        while True:
            try:
                producer.produce(bus.name(SIGNALS_ENGINE), key=b"engine-0", value=dice.bytes(500))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    reader, stamps = CompactedReader(bus.kafka, [bus.name(DEAD_LETTERS)]), list[int]()
    deadline = time.monotonic() + 600
    while len(stamps) < count:
        assert time.monotonic() < deadline, f"{len(stamps)} of {count} refused"
        stamps += [record.timestamp_ms for record in reader.poll(0.5)]
    reader.close()
    took = max(max(stamps) - min(stamps), 1) / 1_000
    row(kind, "headrace streams, all malformed", count, took, processor_s(worker.process.pid) - before)


def latency(bus: Bus, kind: str, engines: int, seconds: int = 8) -> None:
    """Signals at the pace of a live fleet; the delay is from a signal's Kafka time stamp to its state's."""
    producer = Producer({**producer_options(bus.kafka), "linger.ms": 0})
    dice = np.random.default_rng(2)
    first_ms = int(time.time() * 1_000)
    one = signal("engine-0", first_ms, dice)
    for tick in range(seconds * 20):
        for i in range(tick % 20, engines, 20):
            now_ms = int(time.time() * 1_000)
            each = EngineSignals(
                f"engine-{i}", "b", Vantage.ENGINE, now_ms - 1_000, now_ms, one.distributions, one.status
            )
            producer.produce(bus.name(SIGNALS_ENGINE), key=each.key, value=encode(each), timestamp=now_ms)
        producer.poll(0)
        time.sleep(max(0.0, first_ms / 1_000 + (tick + 1) / 20 - time.time()))
    producer.flush(30)
    time.sleep(5.0)
    delays = sorted(
        record.timestamp_ms - state.signal_timestamp_ms
        for record in bus.read([STATE_ENGINE])
        if (state := must(decode(EngineState, record.value))).signal_timestamp_ms >= first_ms + 1_000
    )
    if not delays:
        print(f"{kind:10}signal -> state: nothing came within 5 s")
        return
    p99 = delays[int(0.99 * len(delays))]
    print(
        f"{kind:10}{'signal -> state at ' + str(engines) + '/s':34}p50 {statistics.median(delays):.0f} ms, p99 {p99} ms"
    )


def bare_rate(bus: Bus, kind: str, count: int, engines: int) -> None:
    """The same fold in a plain poll loop: consume, fold, produce, flush, commit."""
    fold, stored = KeyedFold(KINDS[SIGNALS_ENGINE], SETTINGS, TOPICS.partitions), dict[bytes, bytes]()

    def states(messages: list[Message]) -> Mapping[bytes, bytes]:
        folded = fold.fold(list(map(raw_record, messages)), stored.get, None)
        stored.update(folded.states)
        return folded.states

    bare_loop(bus, kind, count, engines, "bare confluent-kafka, same fold", states)


def plain_rate(bus: Bus, kind: str, count: int, engines: int) -> None:
    """What is usually written: a generic Avro reader, and an exponential mean per engine and metric, as JSON."""
    means: dict[bytes, dict[str, float]] = {}
    avro = schema("EngineSignals")

    def states(messages: list[Message]) -> Mapping[bytes, bytes]:
        touched: set[bytes] = set()
        for message in messages:
            key, body = message.key() or b"", message.value() or b""
            plain: Any = fastavro.schemaless_reader(io.BytesIO(body[10:]), avro, None)
            own = means.setdefault(key, {})
            for one in plain["distributions"]:
                mean = one["sum_s"] / one["count"]
                own[one["metric"]] = own.get(one["metric"], mean) * 0.9 + 0.1 * mean
            touched.add(key)
        return {key: orjson.dumps(means[key]) for key in touched}

    bare_loop(bus, kind, count, engines, "bare confluent-kafka, fastavro, mean", states)


def bare_loop(
    bus: Bus, kind: str, count: int, engines: int, what: str, states: Callable[[list[Message]], Mapping[bytes, bytes]]
) -> None:
    load(bus, count, engines)
    consumer = Consumer(consumer_options(bus.kafka, "bare", **{"enable.partition.eof": False}))
    producer = Producer(producer_options(bus.kafka))
    consumer.subscribe([bus.name(SIGNALS_ENGINE)])
    began, cpu, done = None, 0.0, 0
    while done < count:
        messages = [m for m in consumer.consume(2_000, 0.2) if m.error() is None]
        if not messages:
            continue
        if began is None:
            began, cpu = time.perf_counter(), time.process_time()
        for key, value in states(messages).items():
            producer.produce(bus.name(STATE_ENGINE), key=key, value=value)
        producer.flush(30)
        consumer.commit(asynchronous=False)
        done += len(messages)
    assert began is not None
    row(kind, what, count, time.perf_counter() - began, time.process_time() - cpu)
    consumer.close()


def recovery(bus: Bus, kind: str, engines: int = 5_000) -> None:
    """Time from the assignment of the partitions to readiness, with full states of so many engines."""
    records = [
        RawRecord(bus.name(SIGNALS_ENGINE), partition_of(key, 8), i, at_ms, key, value)
        for i, (key, value, at_ms) in enumerate(values(12, 1))
    ]
    (one,) = run_offline(records, SETTINGS, bus.topics).states.values()
    assert isinstance(one, EngineState)
    for i in range(engines):
        engine = f"engine-{i}"
        state = encode(replace(one, engine_id=engine, applied_offset=-1))
        bus.send(STATE_ENGINE, engine.encode(), state)
        bus.send(FLEET, engine.encode(), encode(engine_spec(engine)))
    bus.flush()
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(bus, Path(folder))
        try:
            worker.wait_until("streams ready", 300)
            lines = [json.loads(line) for line in worker.said().splitlines()]
            at = {line["event"]: datetime.fromisoformat(line["time"]) for line in lines}
            took = (at["streams ready"] - at["partitions assigned"]).total_seconds()
            what = f"recovery of {engines} engines, {len(state)} bytes each"
            print(f"{kind:10}{what}: {took:.2f} s (bar {RECOVERY_BAR_S:g} s)")
        finally:
            worker.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", default="embedded,apache")
    parser.add_argument("--signals", type=int, default=40_000)
    parser.add_argument("--engines", type=int, default=500)
    given = parser.parse_args()
    offline(min(given.signals, 20_000), given.engines)
    for kind in given.brokers.split(","):
        with start_broker(kind) as broker:
            for name, run in (("worker", worker_rate), ("bare", bare_rate), ("plain", plain_rate)):
                topics = TopicSettings(prefix=f"{name}.")
                apply_topics(broker.kafka, topics)
                run(Bus(broker.kafka, topics), kind, given.signals, given.engines)
            topics = TopicSettings(prefix="recovery.")
            apply_topics(broker.kafka, topics)
            recovery(Bus(broker.kafka, topics), kind)
            ours = _cpu_us[f"{kind} headrace streams"]
            for peer in ("bare confluent-kafka, same fold", "bare confluent-kafka, fastavro, mean"):
                print(f"{kind:10}processor time a signal, worker / {peer}: {ours / _cpu_us[f'{kind} {peer}']:.2f}")
            refused = _cpu_us[f"{kind} headrace streams, all malformed"] / ours
            print(f"{kind:10}processor time of a refusal / of a signal: {refused:.2f} (bar 1)")
            print(f"{kind:10}one core gives {1e6 / ours:,.0f} signals/s (bar {BAR:,})")


if __name__ == "__main__":
    main()
