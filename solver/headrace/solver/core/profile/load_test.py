"""A load test as measured: stages of one replica, open loop (a rate was offered) or closed (a concurrency was kept).

    TBOT       = (e2e - TTFT) / output tokens, so that TTFT + output tokens x TBOT is the end-to-end time as measured
    in service = completed rate x e2e        Little's law: what puts a closed-loop stage on the axis of rates

TBOT is taken from end-to-end times and not from a tool's own inter-token field, because a tool that counts network
chunks instead of tokens halves it (the H100 set of inference-perf: p50 of 0.04 ms beside a p90 of 9 ms).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.schemas.check_fleet import MAX_RPS, MAX_SECONDS

MAX_STAGES = 100_000
MOST = {
    "offered_rps": MAX_RPS,
    "completed_rps": MAX_RPS,
    "concurrency": MAX_RPS,
    "output_tokens": MAX_RPS,
    "ttft_s": MAX_SECONDS,
    "e2e_s": MAX_SECONDS,
}
"""What a fleet takes of a profile."""
LEAST = 1e-12
"""Far below anything that is measured, and far above where digits end."""


@dataclass(frozen=True, slots=True)
class LoadStage:
    """Means over one stage. `offered_rps`: the loop was open; `concurrency`: it was closed; one of them is given."""

    offered_rps: float | None
    completed_rps: float
    output_tokens: float
    ttft_s: float
    e2e_s: float
    concurrency: float | None = None
    place: str = ""

    @property
    def tbot_s(self) -> float:
        """Mean time between output tokens."""
        return (self.e2e_s - self.ttft_s) / self.output_tokens


@dataclass(frozen=True, slots=True)
class ProfileLabels:
    """What a profile is called and where it comes from."""

    profile_id: str
    hardware: str
    model: str
    source: str


@dataclass(frozen=True, slots=True)
class LoadTest:
    """The stages of one engine, its pool (those of one hardware, model and configuration share a shape), its name."""

    labels: ProfileLabels
    stages: tuple[LoadStage, ...]
    pool: str
    name: str = ""


def closed_loop(concurrency: float, output_tokens: float, ttft_s: float, e2e_s: float, place: str = "") -> LoadStage:
    """Give the stage of a closed loop whose rate was not counted: rate = concurrency / e2e, by Little's law."""
    rate_rps = concurrency / e2e_s if e2e_s > 0 else math.nan
    return LoadStage(None, rate_rps, output_tokens, ttft_s, e2e_s, concurrency, place)


def stage_problems(stages: Sequence[LoadStage]) -> tuple[str, ...]:
    """Give every problem of the numbers in `stages`, each by the stage's place; () where all can be used."""
    if len(stages) > MAX_STAGES:
        return (f"{len(stages)} stages; at most {MAX_STAGES}",)
    return tuple(
        problem for i, stage in enumerate(stages) for problem in _problems(stage.place or f"stages[{i}]", stage)
    )


def _problems(place: str, stage: LoadStage) -> Iterator[str]:
    if (stage.offered_rps is None) == (stage.concurrency is None):
        yield f"{place}: offered_rps or concurrency, one of them"
    given = ["offered_rps", "concurrency", "output_tokens", "ttft_s", "e2e_s"]
    wrong = [name for name in given if not _sound(stage, name)]
    # The rate of a closed loop follows from the others: what is wrong with them is said once.
    if not _sound(stage, "completed_rps") and not (stage.concurrency is not None and wrong):
        wrong.insert(0, "completed_rps")
    for name in wrong:
        value = getattr(stage, name)
        allowed = "a finite number above 0"
        if 0.0 < value < math.inf:
            allowed = f"{LEAST:g} to {MOST[name]:g}"
        yield f"{place}: {name} is {value}; {allowed}"
    if wrong:
        return
    if stage.e2e_s < stage.ttft_s:
        yield f"{place}: e2e_s is {stage.e2e_s}, below its ttft_s {stage.ttft_s}"
    elif not stage.tbot_s <= MAX_SECONDS:
        yield f"{place}: (e2e_s - ttft_s) / output_tokens is {stage.tbot_s:g}; at most {MAX_SECONDS:g}"


def _sound(stage: LoadStage, name: str) -> bool:
    value: float | None = getattr(stage, name)
    return value is None or (value >= LEAST and value <= MOST[name])
