"""The bridge beside a bare loop that does the same work, in one run: a Collector's batches to Avro. CPU time.

    python tests/bench/bench_bridge.py [--engines 20] [--messages 60] [--bootstrap HOST:PORT]

Both read OTLP batches (protobuf, 24 points an engine, ten of them wanted) and write, for each engine of ten batches, a
record of readings with their bounds, counts, labels and lineage. The bare loop is what one would write by hand for
this one mapping: no configuration, no checks, no rejects. With --bootstrap both also read from Kafka and publish to it.
Best of five each. Bars: 100,000 points a second and core, and half of the bare loop.
"""

import argparse
import io
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fastavro
import xxhash
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

sys.path.insert(0, str(Path(__file__).parents[1]))

from collector import batch
from headrace.schemas.avro_schemas import schema
from headrace.schemas.bus.clients import consumer_options, producer_options
from headrace.schemas.bus.raw_records import raw_record
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.raw import RawRecord
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.mapping.parse import load_preset
from telemetry_inputs import T0

TOGETHER = 10
FIELDS = {
    "vllm:time_to_first_token_seconds": ("TTFT", 0),
    "vllm:request_time_per_output_token_seconds": ("TBOT", 0),
    "vllm:inter_token_latency_seconds": ("TBOT", 1),
    "vllm:time_per_output_token_seconds": ("TBOT", 2),
    "vllm:e2e_request_latency_seconds": ("E2E", 0),
    "vllm:request_queue_time_seconds": ("QUEUE", 0),
    "vllm:num_requests_running": ("RUNNING", 0),
    "vllm:num_requests_waiting": ("WAITING", 0),
    "vllm:kv_cache_usage_perc": ("KV_USAGE", 0),
    "vllm:gpu_cache_usage_perc": ("KV_USAGE", 1),
}
Written = Sequence[tuple[bytes, bytes]]


def bare(records: Sequence[RawRecord]) -> Written:
    """Do by hand what the bridge does for this one mapping."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        message, index = MetricsData(), 0
        message.ParseFromString(record.value or b"")
        for resource_metrics in message.resource_metrics:
            resource = {a.key: a.value.string_value for a in resource_metrics.resource.attributes}
            readings = found.setdefault(resource["service.instance.id"], [])
            for scope in resource_metrics.scope_metrics:
                for metric in scope.metrics:
                    known = FIELDS.get(metric.name)
                    if known is None:
                        continue
                    is_histogram = metric.HasField("histogram")
                    for point in (metric.histogram if is_histogram else metric.gauge).data_points:
                        labels = {a.key: a.value.string_value for a in point.attributes}
                        where = f"{known[0]}{sorted(labels.items())}{sorted(resource.items())}"
                        readings.append(bare_reading(known, point, labels, resource, where, (record.offset, index)))
                        index += 1
    last = records[-1]
    lineage = {"topic": "t", "partition": 0, "offset": last.offset, "index": 0, "mapping_hash": "h"}
    return [(engine.encode(), bare_signal(engine, readings, lineage)) for engine, readings in found.items()]


def bare_reading(
    known: tuple[str, int],
    point: Any,  # noqa: ANN401 - protobuf's own
    labels: dict[str, str],
    resource: dict[str, str],
    where: str,
    place: tuple[int, int],
) -> dict[str, Any]:
    """Give one reading as Avro takes it."""
    field, alias = known
    histogram, value = None, None
    if field in ("TTFT", "TBOT", "E2E", "QUEUE"):
        whole = {
            "count": point.count,
            "sum_s": point.sum,
            "min_s": None,
            "max_s": None,
            "bounds": list(point.explicit_bounds),
            "counts": list(point.bucket_counts),
            "scale": None,
            "zero_count": 0,
            "first_bucket": 0,
        }
        histogram = ("headrace.SeriesHistogram", whole)
    else:
        value = point.as_double or float(point.as_int)
    return {
        "series": xxhash.xxh3_64_intdigest((where + str(alias)).encode()) >> 1,
        "slot": xxhash.xxh3_64_intdigest(where.encode()) >> 1,
        "alias": alias,
        "field": field,
        "kind": "CUMULATIVE" if histogram else "INSTANT",
        "part": "WHOLE",
        "model": labels["model_name"],
        "instance": resource["service.instance.id"],
        "rank": labels.get("engine", ""),
        "over_ranks": "SUM",
        "over_instances": "SUM",
        "at_ms": point.time_unix_nano // 1_000_000,
        "start_ms": None,
        "value": value,
        "histogram": histogram,
        "offset": place[0],
        "index": place[1],
    }


def bare_signal(engine: str, readings: list[dict[str, Any]], lineage: dict[str, Any]) -> bytes:
    """Give the Avro bytes of one engine's readings."""
    end_ms = max(reading["at_ms"] for reading in readings)
    plain = {
        "engine_id": engine,
        "source": "bare",
        "vantage": "ENGINE",
        "period_start_ms": end_ms,
        "period_end_ms": end_ms,
        "distributions": [],
        "status": None,
        "series": ("array", readings),
        "lineage": ("headrace.Lineage", lineage),
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema("EngineSignals"), plain)
    return out.getvalue()


class Bridged:
    """The bridge's own path."""

    def __init__(self) -> None:
        self._translator = Translator(load_preset("vllm_v1"), DecodeOptions("otlp_proto"))

    def __call__(self, records: Sequence[RawRecord]) -> Written:
        packs = Packs("t", 0, "h", "bridge")
        for record in records:
            packs.add(self._translator.translate(record, record.timestamp_ms))
        return [(packed.key, packed.value) for packed in packs.take()]


def in_memory(work: Callable[[Sequence[RawRecord]], Written], records: Sequence[RawRecord]) -> None:
    """Do the work on records as they are."""
    for i in range(0, len(records), TOGETHER):
        work(records[i : i + TOGETHER])


def through_kafka(kafka: KafkaSettings, source: str, target: str, many: int) -> Callable[..., None]:
    """Give the same with reading and publishing."""

    def run(work: Callable[[Sequence[RawRecord]], Written], _: Sequence[RawRecord]) -> None:
        consumer, producer = Consumer(consumer_options(kafka, uuid.uuid4().hex)), Producer(producer_options(kafka))
        consumer.subscribe([source])
        done = 0
        while done < many:
            records = [raw_record(m) for m in consumer.consume(TOGETHER, 0.5) if m.error() is None]
            done += len(records)
            for key, value in work(records) if records else ():
                producer.produce(target, value, key=key)
            producer.poll(0)
        producer.flush(60)
        consumer.close()

    return run


def rate(run: Callable[[], None], points: int) -> float:
    """Give the best of five rates, per CPU second."""
    rates: list[float] = []
    for _ in range(5):
        began_s = time.process_time()
        run()
        rates.append(points / (time.process_time() - began_s))
    return max(rates)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", type=int, default=20)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--bootstrap", help="also through this broker")
    given = parser.parse_args()
    at_ms = [T0 + 1_000 * i for i in range(given.messages)]
    values = [batch(given.engines, i, ms) for i, ms in enumerate(at_ms)]
    records = [RawRecord("t", 0, i, ms, None, values[i]) for i, ms in enumerate(at_ms)]
    points = given.messages * given.engines * 24
    ways: list[tuple[str, Callable[..., None]]] = [("in memory", in_memory)]
    if given.bootstrap:
        kafka, name = KafkaSettings(given.bootstrap), f"bench-{uuid.uuid4().hex[:8]}"
        producer = Producer(producer_options(kafka))
        for value in values:
            producer.produce(name, value)
        producer.flush(60)
        ways.append(("with Kafka", through_kafka(kafka, name, f"{name}-out", given.messages)))
    print(f"{'way':<12}{'bare loop':>12}{'bridge':>12}{'ratio':>8}   points a CPU second")
    bridged = Bridged()
    assert len(bridged(records[:TOGETHER])) == len(bare(records[:TOGETHER])) == given.engines
    for way, run in ways:
        by_hand, ours = (rate(lambda w=work, r=run: r(w, records), points) for work in (bare, bridged))
        print(f"{way:<12}{by_hand:>12,.0f}{ours:>12,.0f}{ours / by_hand:>8.2f}", flush=True)
    print("bars: bridge 100,000; ratio 0.50")


if __name__ == "__main__":
    main()
