"""A long history of a large fleet in a folder, as `headrace export` writes it, without recorded ticks.

    engines   over ten regions and five models; a signal a second each, of what their profile says at their load
    demand    ServeGen's rates of each model, ten minutes a window, split over the regions; a record a second and route
    network   the round trips of AWS, a probe of each link every five seconds
    outcomes  on demand: how requests ended, told by each engine in its signal, or by a gateway in one of its own

What an engine tells is drawn for TILE_S seconds and told again after that, with its own times. The engines' records
are put together as bytes, a partition in a process of its own: a day of them is 86 million. Seeded.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace.infra.fleet.curves import h100_curve
from headrace.infra.fleet.scenario import profile_of
from headrace.infra.fleet.tables import rows
from headrace.replay.core.history import Span
from headrace.replay.sources.container import COMPRESSION_LEVEL, SYNC_BYTES, ContainerWriter
from headrace.replay.sources.container_end import MARKER
from headrace.replay.sources.manifest import Manifest, Part, write_manifest
from headrace.replay.sources.writers import Writers
from headrace.schemas.codec import encode
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Outcomes,
    Vantage,
)
from headrace.schemas.topics import (
    FLEET,
    PROFILES,
    SIGNALS_DEMAND,
    SIGNALS_ENGINE,
    SIGNALS_NETWORK,
    TopicSettings,
    topic_table,
)
from headrace.streams.core.partitioner import partition_of

if TYPE_CHECKING:
    from headrace.replay.core.columnar.cursor import Ints
    from headrace.schemas.records import Record

T0 = 1_700_000_000_000
TILE_S = 60
PROBE_S = 5
REPLICAS, REPLICA_RPS = 4, 3.0
LOAD = 0.65
FAILED = 0.002
GATEWAY_AFTER_MS = 370
REGIONS = (
    *("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1"),
    *("ap-northeast-1", "ap-southeast-1", "ap-south-1", "sa-east-1", "ca-central-1"),
)
RATES = Path(__file__).parent / "data" / "servegen_model_rates_10min.csv.gz"
LATE_MS = 50
TOPICS = TopicSettings()
TABLE = topic_table(TOPICS)
PROFILE = profile_of(h100_curve(), REPLICA_RPS)
PROCESSES = 2
Told = tuple[bytes, int, list[tuple[bytes, bytes]]]
"""An engine's key, its phase in a second, and what comes before and after the times of each value."""
_SOMETHING = b"\x02"
"""Branch 1 of a union."""


def write_history(folder: Path, engines: int, seconds: int, counted: Vantage | None = None) -> int:
    """Write a history; give how many engine periods are in it. `counted` is who tells how requests ended, if any."""
    rng = np.random.default_rng(1)
    models, rates = _rates()
    parts: list[Part] = []
    known: list[EngineSpec | LatencyProfile] = [PROFILE]
    known += [_spec(n, models) for n in range(engines)]
    for role, records in (
        (PROFILES, (r for r in known if not isinstance(r, EngineSpec))),
        (FLEET, (r for r in known if isinstance(r, EngineSpec))),
        (SIGNALS_DEMAND, _demand(engines, models, rates, seconds, rng)),
        (SIGNALS_NETWORK, _probes(seconds)),
    ):
        parts += _write(folder, role, records)
    told = _told(engines, models, min(seconds, TILE_S), rng, counted)
    with get_context("spawn").Pool(PROCESSES) as pool:
        parts += pool.map(partial(_write_engines, folder, seconds), told.items(), chunksize=1)
    span = Span(T0, T0 + 1000 * seconds)
    write_manifest(folder, Manifest(span, 0, TOPICS, tuple(parts)))
    return engines * seconds


def _write(folder: Path, role: str, records: "Iterator[Record] | Iterator[tuple[int, bytes, bytes]]") -> list[Part]:
    topic = TABLE[role]
    writers, offsets = Writers(folder, topic), [0] * topic.partitions
    places: dict[bytes, int] = {}
    for each in records:
        at_ms, key, value = each if isinstance(each, tuple) else (T0 - 1, each.key, encode(each))
        if key not in places:
            places[key] = partition_of(key, topic.partitions)
        place = places[key]
        writers.write(RawRecord(topic.name, place, offsets[place], at_ms, key, value))
        offsets[place] += 1
    return writers.close()


def _spec(n: int, models: list[str]) -> EngineSpec:
    site, model = REGIONS[n % len(REGIONS)], models[n // len(REGIONS) % len(models)]
    return EngineSpec(f"engine-{n:05d}", site, (model,), (), (), PROFILE.profile_id, REPLICA_RPS, None, drain=False)


def _rates() -> tuple[list[str], dict[str, list[float]]]:
    """Give each model's rates, ten minutes a window, as a share of their mean."""
    found: dict[str, list[float]] = {}
    with gzip.open(RATES, "rt") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model"], []).append(float(row["rate_rps"]))
    day = {model: rates[:144] for model, rates in sorted(found.items())}
    return list(day), {model: [rate / (sum(rates) / len(rates)) for rate in rates] for model, rates in day.items()}


def _told(
    engines: int, models: list[str], seconds: int, rng: np.random.Generator, counted: Vantage | None
) -> dict[int, "list[Told]"]:
    """Draw what is told of engines, by partition: its key, its phase, and a value a second without its times."""
    status = EngineStatus(Health.HEALTHY, REPLICAS, REPLICAS, REPLICAS, 30.0, 2.0, 0.5)
    topic, told = TABLE[SIGNALS_ENGINE], dict[int, list[Told]]()
    for n, phase in enumerate(rng.integers(0, 1000, engines).tolist()):
        spec, own, seen = _spec(n, models), list[tuple[bytes, bytes]](), list[tuple[bytes, bytes]]()
        for _ in range(seconds):
            load = float(np.clip(rng.normal(LOAD, 0.1), 0.05, 1.0))
            ttft = float(np.interp(load, PROFILE.load_knots, PROFILE.ttft_s))
            tbot = float(np.interp(load, PROFILE.load_knots, PROFILE.tbot_s))
            count = int(rng.poisson(load * REPLICAS * REPLICA_RPS))
            means = ((Metric.TTFT, ttft), (Metric.TBOT, tbot), (Metric.E2E, ttft + PROFILE.output_tokens * tbot))
            said = tuple(_distribution(spec.models[0], metric, mean, count, rng) for metric, mean in means)
            signal = EngineSignals(spec.engine_id, "exporter", Vantage.ENGINE, T0, T0 + 1000, said, status)
            if counted is not None:
                failed = int(rng.binomial(count, FAILED))
                ended = (Outcomes(spec.models[0], count - failed, failed),)
                if counted is Vantage.ENGINE:
                    signal = replace(signal, outcomes=ended)
                else:
                    gateways = replace(signal, source="gateway", vantage=counted, status=None, outcomes=ended)
                    seen.append(_timeless(gateways))
            own.append(_timeless(signal))
        of = told.setdefault(partition_of(signal.key, topic.partitions), [])
        of.append((signal.key, phase, own))
        if seen:
            of.append((signal.key, (phase + GATEWAY_AFTER_MS) % 1000, seen))
    return {number: sorted(each, key=lambda told: told[1]) for number, each in sorted(told.items())}


def _timeless(signal: EngineSignals) -> tuple[bytes, bytes]:
    """Give what comes before and after the times of a signal."""
    before, after = encode(signal).split(_long(T0) + _long(T0 + 1000))
    return before, after


def _write_engines(folder: Path, seconds: int, partition: "tuple[int, list[Told]]") -> Part:
    """Write one partition of the engines' signals: the blocks that `ContainerWriter` would make of them."""
    number, told = partition
    topic, offset = TABLE[SIGNALS_ENGINE], 0
    path = folder / SIGNALS_ENGINE / f"{number}.avro"
    ContainerWriter(path, (topic.name, number)).close()
    marker = path.read_bytes()[-MARKER:]
    phase = np.array([each[1] for each in told])
    keys = [_bytes(key) for key, _, _ in told]
    values = [[(_SOMETHING + _long(len(a) + len(b) + 12) + a, b + b"\0") for a, b in each] for _, _, each in told]
    with path.open("ab") as file:
        block, size, count = list[bytes](), 0, 0
        for second in range(seconds):
            start = T0 + 1000 * second + phase
            times, stamps = _longs(start, start + 1000), _longs(start + 1000 + LATE_MS)
            for key, value, time, stamp in zip(keys, values, times, stamps, strict=True):
                before, after = value[second % TILE_S]
                block += (_long(offset), stamp, key, before, time, after)
                size += len(before) + len(after) + 32
                offset, count = offset + 1, count + 1
            if size >= SYNC_BYTES or second == seconds - 1:
                packed = zlib.compress(b"".join(block), COMPRESSION_LEVEL, -zlib.MAX_WBITS)
                file.write(b"".join((_long(count), _long(len(packed)), packed, marker)))
                block, size, count = [], 0, 0
    return Part(SIGNALS_ENGINE, number, f"{SIGNALS_ENGINE}/{number}.avro", offset, 0, offset)


def _distribution(model: str, metric: Metric, mean_s: float, count: int, rng: np.random.Generator) -> Distribution:
    if not count:
        return Distribution(model, metric, 0, 0.0, None, None, 0, 0, ())
    drawn = rng.lognormal(np.log(mean_s), 0.3, count)
    index = np.floor(np.log2(drawn) * 8).astype(int)
    counts = tuple(np.bincount(index - index.min()).tolist())
    total = float(drawn.sum())
    return Distribution(
        model, metric, count, total, float(drawn.min()), float(drawn.max()), 0, int(index.min()), counts
    )


def _demand(
    engines: int, models: list[str], rates: dict[str, list[float]], seconds: int, rng: np.random.Generator
) -> Iterator[tuple[int, bytes, bytes]]:
    shares = rng.dirichlet(np.full(len(REGIONS), 4.0), len(models))
    mean = LOAD * engines / len(models) * REPLICAS * REPLICA_RPS
    for second in range(seconds):
        start = T0 + 1000 * second
        for m, model in enumerate(models):
            rps = mean * rates[model][second // 600 % len(rates[model])]
            drawn: Ints = rng.poisson(rps * shares[m])
            for region, offered in zip(REGIONS, map(int, drawn), strict=True):
                told = Demand(region, model, "default", "gateway", start, start + 1000, offered, 0, 0)
                yield start + 1000 + LATE_MS, told.key, encode(told)


def _probes(seconds: int) -> Iterator[tuple[int, bytes, bytes]]:
    known = {(row["src"], row["dst"]): float(row["rtt_p50_ms"]) / 1000 for row in rows("aws_region_rtt")}
    for second in range(0, seconds, PROBE_S):
        for src in REGIONS:
            for dst in REGIONS:
                at_ms = T0 + 1000 * second + 500
                probe = NetworkProbe(src, dst, "prober", at_ms, known[src, dst])
                yield at_ms + LATE_MS, probe.key, encode(probe)


def _long(value: int) -> bytes:
    """Give a long as Avro writes it."""
    out, left = io.BytesIO(), value << 1
    while left >= 0x80:
        out.write(bytes([left & 0x7F | 0x80]))
        left >>= 7
    out.write(bytes([left]))
    return out.getvalue()


def _longs(*columns: "Ints") -> list[bytes]:
    """Give instants as Avro writes them, six bytes each; those of a row beside each other."""
    left = np.stack(columns, axis=1)[:, :, None] << 1 >> np.arange(0, 42, 7)
    left = left & 0x7F | np.where(np.arange(6) < 5, 0x80, 0)
    whole, width = left.astype(np.uint8).tobytes(), 6 * len(columns)
    return [whole[at : at + width] for at in range(0, len(whole), width)]


def _bytes(value: bytes) -> bytes:
    """Give bytes that may be null as Avro writes them."""
    return _SOMETHING + _long(len(value)) + value
