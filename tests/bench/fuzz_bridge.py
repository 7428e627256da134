"""Hostile messages by the hundred thousand through the bridge's own path and the fold: does anything raise or pile up?

    python tests/bench/fuzz_bridge.py [--messages 100000] [--carrier otlp_proto]

Each message is a mutated sample, a tree with odd values, or random bytes (the mutations of tests/property/
test_telemetry_fuzz.py). It is translated and packed; what comes out must pass the signals' own check, or the good
readings that travel with it would be refused; every 51st goes through the fold. Memory is read from the process.
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "property"))

from test_telemetry_fuzz import TREES, grown, mutated, seeds

from headrace.schemas.check_signals import check_signal
from headrace.schemas.codec import decode, must
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import EngineSignals
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.streams.core.canonical.packs import Packs
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.decode.edge import carriers
from headrace.streams.core.keyed import KINDS, KeyedFold
from headrace.streams.core.mapping.parse import parse_mapping
from headrace.streams.core.partitioner import partition_of
from headrace.streams.settings import StreamsSettings
from telemetry_inputs import T0, text

POINTS = "preset: vllm_v1\nlabels: {instance: i1, model_name: m}"
DOCUMENTS = """
identity: {engine: ["{engine}", "e"], model: ["{model}", "m"]}
document: {labels: {engine: engine, model: model}}
fields: {ttft: {path: ttft_ms, unit: ms}, tbot: {path: tpot_ms, unit: ms}, running: {path: worker_id}}
"""


def resident_mb() -> float:
    """Give this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def fuzzed(carrier: str, messages: int) -> str:
    """Give the line of one carrier."""
    rng, found = random.Random(20260822), seeds(carrier)
    translator = Translator(
        parse_mapping(DOCUMENTS if carrier in ("json", "msgpack") else POINTS), DecodeOptions(carrier)
    )
    fold, stored = KeyedFold(KINDS[SIGNALS_ENGINE], StreamsSettings(), 8), dict[bytes, bytes]()
    reasons: Counter[str] = Counter()
    silent = unsound = refused = 0
    after_warm_up, began_s = 0.0, time.process_time()
    for i in range(messages):
        value = mutated(rng, rng.choice(found))
        if carrier in TREES and i % 2:
            load, dump = TREES[carrier]
            value = dump(grown(rng, load(rng.choice(found)), rng.choice([0.003, 0.02, 0.1])))
        record = replace(text(value), offset=i)
        translated = translator.translate(record, T0 + 1_000_000)
        reasons.update(each.reason for each in translated.rejects)
        silent += sum(not each.detail for each in translated.rejects)
        packs = Packs("t", 0, "h", "fuzz")
        packs.add(translated)
        for packed in packs.take():
            unsound += check_signal(must(decode(packed.kind, packed.value)), T0 + 1_000_000) is not None
            if i % 51 == 0 and packed.kind is EngineSignals:
                raw = RawRecord("s", partition_of(packed.key, 8), i, T0 + 1_000_000, packed.key, packed.value)
                done = fold.fold([raw], stored.get, None)
                stored.update(done.states)
                refused += len(done.rejected)
        if i == messages // 4:
            after_warm_up = resident_mb()
    took_s = time.process_time() - began_s
    largest = max((len(value) for value in stored.values()), default=0)
    said = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(4))
    return (
        f"{carrier:<14}{messages:>9}{messages / took_s:>9.0f}{silent:>8}{unsound:>9}{refused:>9}"
        f"{largest:>10}{resident_mb() - after_warm_up:>+10.1f}  {said}"
    )


def main() -> None:
    """Print one line a carrier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--carrier")
    given = parser.parse_args()
    head = f"{'carrier':<14}{'messages':>9}{'/CPU s':>9}{'silent':>8}{'unsound':>9}{'refused':>9}{'state B':>10}"
    print(f"{head}{'MB grown':>10}  rejects")
    for carrier in carriers():
        if given.carrier in (None, carrier):
            print(fuzzed(carrier, given.messages), flush=True)


if __name__ == "__main__":
    main()
