"""A label made from user input: a million distinct values through the bridge's path and the fold. Is memory bounded?

    python tests/bench/flood_bridge.py [--values 1000000]

One engine is flooded, another of the same topic is scraped beside it; its state must be what it is without the flood.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.schemas.raw import RawRecord
from headrace.schemas.state import EngineState
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.streams.bridge.tally import Tally
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.mapping.parse import load_preset
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0, text

A_MESSAGE = 2_000
GAUGE = 'vllm:num_requests_running{{instance="{engine}",model_name="m",user="{user}"}} {value}'
BUCKET = 'vllm:time_to_first_token_seconds_{part}{{instance="quiet",model_name="m"{le}}} {value}'


def scrape(k: int, flood: int) -> str:
    """Give one scrape: the quiet engine's histogram, and `flood` new users' gauges of the other engine."""
    quiet = [("bucket", ',le="0.1"', 3 * k), ("bucket", ',le="+Inf"', 5 * k), ("sum", "", k), ("count", "", 5 * k)]
    lines = [BUCKET.format(part=part, le=le, value=value) for part, le, value in quiet]
    lines += [GAUGE.format(engine="flooded", user=f"u{k * A_MESSAGE + i}", value=i) for i in range(flood)]
    return "\n".join(lines) + "\n"


def resident_mb() -> float:
    """Give this process's resident memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def run(values: int, *, floods: bool) -> tuple[dict[bytes, bytes], Tally, list[float]]:
    """Give the states, what the bridge would say, and its memory by quarters."""
    translator, tally = Translator(load_preset("vllm_v1"), DecodeOptions("prom_text")), Tally()
    fold, stored = KeyedFold(KINDS[SIGNALS_ENGINE], StreamsSettings(), 8), dict[bytes, bytes]()
    scrapes, memory = values // A_MESSAGE, list[float]()
    for k in range(scrapes):
        at_ms = T0 + 1_000 * k
        packs = Packs("t", 0, "h", "flood")
        record = replace(text(scrape(k, A_MESSAGE if floods else 0), at_ms), offset=k)
        translated = translator.translate(record, at_ms)
        tally.add(translated)
        packs.add(translated)
        for i, each in enumerate(packs.take()):
            raw = RawRecord("s", partition_of(each.key, 8), 100 * k + i, at_ms + 10, each.key, each.value)
            stored.update(fold.fold([raw], stored.get, None).states)
        if (k + 1) % (scrapes // 4) == 0:
            memory.append(resident_mb())
    return stored, tally, memory


def without_places(state: object) -> EngineState:
    """Give what a state says of its engine, without what it says of the log."""
    assert isinstance(state, EngineState)
    return replace(state, applied_offset=0, signal_timestamp_ms=0, series=None)


def main() -> None:
    """Print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1_000_000)
    given = parser.parse_args()
    began_s = time.process_time()
    flooded, tally, memory = run(given.values, floods=True)
    took_s = time.process_time() - began_s
    quiet, _, _ = run(given.values, floods=False)
    fold = KeyedFold(KINDS[SIGNALS_ENGINE], StreamsSettings(), 8)
    of_flooded, *states = (fold.read(v) for v in (flooded[b"flooded"], flooded[b"quiet"], quiet[b"quiet"]))
    assert isinstance(of_flooded, EngineState)
    told = [without_places(state) for state in states]
    print(f"{given.values} label values in {took_s:.0f} CPU s; memory by quarters, MB: {[round(m) for m in memory]}")
    print(f"the bridge says: {tally.sentence()}")
    print(f"the flooded engine's state: {len(flooded[b'flooded'])} bytes, {of_flooded.filled}")
    print(f"the quiet engine's state is what it is without the flood: {told[0] == told[1]}")


if __name__ == "__main__":
    main()
