"""Conversation traces for `bench_sessions`: a recorded one, and made ones that differ from it in what might matter.

    mooncake   12,031 requests of 7,373 sessions; one block is common to all (tests/bench/data/SOURCES.md)
    chat       short turns, many of them: think times of half a minute, turns geometric with a heavy tail, and forty
               applications, each with a system prompt of its own that all its conversations share (Zipf)
    agents     few long sessions that come back every few seconds and whose prompts grow each time

A request's key is the first block that is the conversation's own: what the gateway's session key amounts to.
"""

import csv
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

TRACE = Path(__file__).parent / "data/mooncake_conversation_blocks.csv.gz"
BLOCK_TOKENS = 512
PREFILL_S_PER_TOKEN = 5e-5
DECODE_S_PER_TOKEN = 0.02


@dataclass(frozen=True)
class Request:
    """One request; `blocks` are its prompt's prefix blocks, equal numbers are equal prefixes."""

    at_s: float
    key: str
    blocks: tuple[int, ...]
    input_tokens: int
    output_tokens: int
    established: bool

    def seconds(self, hits: int) -> float:
        """Give how long an engine is at it where so many blocks are cached."""
        missed = max(0, self.input_tokens - hits * BLOCK_TOKENS)
        return missed * PREFILL_S_PER_TOKEN + self.output_tokens * DECODE_S_PER_TOKEN


def mooncake() -> list[Request]:
    """Give the recorded trace; the requests of a tick of 3 s are spread over it."""
    rng, seen, requests = np.random.default_rng(1), set[str](), list[Request]()
    with gzip.open(TRACE, "rt") as file:
        rows = sorted((float(row["t_s"]) + rng.uniform(0, 3), i, row) for i, row in enumerate(csv.DictReader(file)))
    for at_s, _, row in rows:
        blocks = tuple(_blocks(row["blocks"]))
        key = str(blocks[1] if len(blocks) > 1 else blocks[0])
        tokens = int(row["input_tokens"]), int(row["output_tokens"])
        requests.append(Request(at_s, key, blocks, *tokens, established=key in seen))
        seen.add(key)
    return requests


def _blocks(ranges: str) -> list[int]:
    bounds = [part.partition("-") for part in ranges.split()]
    return [block for first, _, last in bounds for block in range(int(first), int(last or first) + 1)]


@dataclass(frozen=True)
class Made:
    """What makes a synthetic trace."""

    sessions: int
    mean_turns: float
    think_s: float
    first_blocks: float
    turn_blocks: float
    applications: int
    over_s: float


CHAT = Made(
    sessions=9_000, mean_turns=3.0, think_s=30.0, first_blocks=2.0, turn_blocks=1.0, applications=40, over_s=1_800.0
)
AGENTS = Made(
    sessions=1_500, mean_turns=16.0, think_s=5.0, first_blocks=8.0, turn_blocks=2.0, applications=5, over_s=1_800.0
)


def made(of: Made, seed: int) -> list[Request]:
    """Make a trace, sorted by time."""
    rng = np.random.default_rng(seed)
    popular = 1.0 / np.arange(1, of.applications + 1)
    numbers = iter(range(10**9))
    systems = [[next(numbers) for _ in range(int(rng.integers(1, 4)))] for _ in range(of.applications)]
    requests: list[Request] = []
    for session in range(of.sessions):
        application = int(rng.choice(of.applications, p=popular / popular.sum()))
        blocks = list(systems[application])
        at_s = float(rng.uniform(0, of.over_s))
        patience = float(rng.lognormal(0.0, 0.7))  # some people talk far longer than others
        for turn in range(1 + int(rng.geometric(1.0 / max(1.01, of.mean_turns * patience)) - 1)):
            grown = 1 + int(rng.poisson(of.turn_blocks if turn else of.first_blocks))
            blocks += [next(numbers) for _ in range(grown)]
            output = 1 + int(rng.lognormal(4.8, 0.8))
            tokens = len(blocks) * BLOCK_TOKENS
            requests.append(Request(at_s, f"s{session}", tuple(blocks), tokens, output, established=turn > 0))
            at_s += output * DECODE_S_PER_TOKEN + float(rng.exponential(of.think_s))
    return sorted(requests, key=lambda request: request.at_s)


def sped(requests: Sequence[Request], under_way: float) -> list[Request]:
    """Give the trace at the speed at which so many requests are under way in the mean, half of the blocks cached."""
    busy_s = sum(request.seconds(len(request.blocks) // 2) for request in requests)
    factor = under_way * (requests[-1].at_s - requests[0].at_s) / busy_s
    return [replace(request, at_s=request.at_s / factor) for request in requests]


def faster(requests: Iterable[Request], factor: float) -> list[Request]:
    """Give the trace so many times faster."""
    return [replace(request, at_s=request.at_s / factor) for request in requests]
