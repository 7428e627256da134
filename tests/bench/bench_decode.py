"""Rates of the front half on one core: decode, map, difference and spread, by carrier. CPU time, best of three.

    python tests/bench/bench_decode.py [--points 200000] [--carrier otlp_proto]

A message is one of the samples; for otlp_proto also a Collector's batch of 20 engines. Points are those in the message,
so `wanted` shows what a mapping's names save. Rates of one sample file differ with its mix of gauges and histograms.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.schemas.raw import RawRecord
from headrace.streams.core.decode.contract import DecodeOptions, Point
from headrace.streams.core.decode.edge import decode
from headrace.streams.core.decode.families import Pending, assemble
from headrace.streams.core.differencing.book import SeriesBook
from headrace.streams.core.differencing.level import Delta
from headrace.streams.core.differencing.spread import distribution
from headrace.streams.core.mapping.apply import Mapper
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.core.mapping.reading import DURATIONS, Reading
from telemetry_inputs import VLLM_FILES, records, scrapes

ENGINES = 20


def batch(record: RawRecord) -> RawRecord:
    """Give a Collector's batch: the same scrape of many engines."""
    source, whole = MetricsData(), MetricsData()
    source.ParseFromString(record.value or b"")
    for i in range(ENGINES):
        copied = whole.resource_metrics.add()
        copied.CopyFrom(source.resource_metrics[0])
        for attribute in copied.resource.attributes:
            if attribute.key in ("service.instance.id", "k8s.pod.name"):
                attribute.value.string_value += f"-{i}"
    return RawRecord("t", 0, 0, record.timestamp_ms, None, whole.SerializeToString())


def best(run: Callable[[], int]) -> float:
    """Give the best of three rates, per CPU second."""
    rates: list[float] = []
    for _ in range(3):
        started = time.process_time()
        done = run()
        rates.append(done / (time.process_time() - started))
    return max(rates)


def decoded(messages: Sequence[RawRecord], options: DecodeOptions, wanted: int) -> int:
    done = 0
    while done < wanted:
        for message in messages:
            found = decode(message, options)
            done += len(found.points) + sum(found.skipped.values())
    return done


def differenced(readings: Sequence[Reading], wanted: int) -> int:
    done, book = 0, SeriesBook()
    while done < wanted:
        for i, reading in enumerate(readings):
            outcome = book.take(reading._replace(time_ms=reading.time_ms + done * 1000 + i))
            if isinstance(outcome, Delta) and outcome.histogram is not None and outcome.histogram.total is not None:
                distribution(reading.identity.model, DURATIONS[reading.field], outcome.histogram)
        done += len(readings)
    return done


def main() -> None:
    """Print one line a carrier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--carrier")
    given = parser.parse_args()
    mapping = parse_mapping("preset: vllm_v1\nlabels: {instance: i}")
    runs: list[tuple[str, str, Sequence[RawRecord]]] = [
        (name, carrier, [r for r in records(name) if b"gen_ai" not in (r.value or b"")])
        for name, carrier in VLLM_FILES.items()
    ]
    runs += [("scrape", "prom_text", scrapes()[:1])]
    runs += [("batch of 20", "otlp_proto", [batch(records("otel_kafka_otlp_proto")[0])])]
    print(f"{'sample':<32}{'carrier':<15}{'decode/s':>10}{'wanted/s':>10}{'map/s':>10}{'difference/s':>13}")
    for name, carrier, messages in runs:
        if given.carrier not in (None, carrier):
            continue
        everything, wanted = DecodeOptions(carrier), DecodeOptions(carrier, wanted=mapping.wanted)
        pending, points = Pending(), list[Point]()
        for message in messages:
            points += assemble(pending, decode(message, everything).points, mapping.families).points
        mapper = Mapper(mapping)
        readings = mapper.map_points(points).readings

        def mapped(mapper: Mapper = mapper, points: list[Point] = points) -> int:
            rounds = given.points // len(points) + 1
            for _ in range(rounds):
                mapper.map_points(points)
            return rounds * len(points)

        rates = [
            best(lambda o=everything, m=messages: decoded(m, o, given.points)),
            best(lambda o=wanted, m=messages: decoded(m, o, given.points)),
            best(mapped),
            best(lambda r=readings: differenced(r, given.points // 4)),
        ]
        print(f"{name:<32}{carrier:<15}{rates[0]:>10.0f}{rates[1]:>10.0f}{rates[2]:>10.0f}{rates[3]:>13.0f}")


if __name__ == "__main__":
    main()
