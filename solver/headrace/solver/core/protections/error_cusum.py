"""S <- max(0, S + failed ln R - requests k), k = ln(1 + (R - 1) p0): does an engine fail more requests than its peers?

    p0      share of failures that is usual: its peers' over the window, at the upper end of what chance leaves open,
            (f + sqrt f + 1) / n, and at least error_tolerated
    peers   the others of its pool; where fewer than two of them count, the others of the same models, wherever they
            are; where all of those have fewer than `FEWEST` requests nobody can be asked, and p0 = error_tolerated
    R       error_ratio: a share of R times p0's odds is found soonest; the drift k is what each request takes off
    alarm   S >= ln error_once_in, where S is held, so that it falls as soon as requests succeed

Evidence comes by requests, never by ticks: a pane of the window counts once, when it is final, and `error_until_ms`
remembers up to which. What may still grow counts for this tick alone. S of 0 needs no memory: begun anew at the oldest
pane of the window it is 0 again where it was 0. An engine without requests adds nothing, and is not judged.

Where all peers fail, failing is usual and nobody stands out. Peers that are known to fail do not say what is usual.

Failure mode: between p0 and about twice that S hardly rises, and an engine there is left alone for long. What is asked
at one site alone, and always fails, is held against the engine that stands there alone.
Source: Page, "Continuous inspection schemes", Biometrika 1954; at p0 the mean time to a false alarm is at least
e^threshold = error_once_in requests (Lorden 1971).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.problem import Engine, Outcomes
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.core.protections.peers import Pool
from headrace.solver.settings import SolverSettings

FEWEST_PEERS = 2
"""Others of a pool that count their requests, from which they say what is usual there."""
FEWEST = 20
"""Requests from which others of the same models say what is usual: what `residual` asks for."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What an engine's outcomes say: `memory` for the next tick; `failing` is a sentence, empty where it is not.

    `share` is the share of its requests that it fails, 0..1; 0 where it is not failing.
    """

    memory: EngineMemory
    failing: str = ""
    share: float = 0.0


class _Ended(NamedTuple):
    """Requests that ended, and how many of them failed."""

    requests: int
    failed: int


class _Sums:
    """How the requests of several engines ended, of those that are not known to fail."""

    __slots__ = ("engines", "failed", "requests")

    def __init__(self) -> None:
        self.engines = self.requests = self.failed = 0

    def add(self, own: _Ended) -> None:
        """Count one more engine."""
        self.engines += 1
        self.requests += own.requests
        self.failed += own.failed

    def without(self, own: _Ended | None) -> tuple[int, _Ended]:
        """Give how many the others are, and their requests; None is one that is not among them."""
        if own is None:
            return self.engines, _Ended(self.requests, self.failed)
        return self.engines - 1, _Ended(self.requests - own.requests, self.failed - own.failed)


def suspicions_of(guarded: Guarded, pools: Iterable[Pool], settings: SolverSettings) -> Mapping[str, Suspicion]:
    """Judge engines by how their requests ended; only those of which that was counted."""
    counted: list[tuple[Engine, Outcomes, _Ended, _Sums]] = []
    of_models: dict[tuple[str, ...], _Sums] = {}
    for pool in pools:
        of_pool = _Sums()
        for engine in pool.there:
            outcomes = engine.outcomes
            if outcomes is None or not (own := _Ended(outcomes.requests, outcomes.failed)).requests:
                continue
            counted.append((engine, outcomes, own, of_pool))
            if _sound(guarded, engine):
                of_pool.add(own)
                of_models.setdefault(engine.models, _Sums()).add(own)
    found: dict[str, Suspicion] = {}
    for engine, outcomes, own, of_pool in counted:
        memory = guarded.memory(engine.engine_id)
        if own.failed or memory.error_ppm is not None:  # without a failure no evidence begins: true of nearly all
            sums = of_pool, of_models.get(engine.models, _Sums())
            usual = _usual(sums, own if _sound(guarded, engine) else None, settings)
            found[engine.engine_id] = _judged(memory, outcomes, own, usual, settings)
    return found


def _sound(guarded: Guarded, engine: Engine) -> bool:
    memory = guarded.remembered.get(engine.engine_id)
    return memory is None or memory.error_ppm != PPM


def _usual(sums: tuple[_Sums, _Sums], own: _Ended | None, settings: SolverSettings) -> tuple[float, str]:
    """Give which share of failures is usual for an engine, and whose it is in words."""
    (peers, others), whose = sums[0].without(own), "peers"
    if peers < FEWEST_PEERS:
        (_, others), whose = sums[1].without(own), "others of its models"
        if others.requests < FEWEST:
            return settings.error_tolerated, f"nobody to compare with, {100 * settings.error_tolerated:g} % tolerated"
    requests, failed = others
    usual = max(settings.error_tolerated, min(1.0, (failed + math.sqrt(failed) + 1.0) / requests))
    return usual, f"{whose} {100 * failed / requests:.1f} %"


def _judged(
    memory: EngineMemory, outcomes: Outcomes, own: _Ended, usual: tuple[float, str], settings: SolverSettings
) -> Suspicion:
    kept, now = _scores(memory, outcomes, usual[0], settings)
    evidence = round(kept * PPM)
    until_ms = max((pane.end_ms for pane in outcomes.panes if pane.is_final), default=memory.error_until_ms)
    remembered = replace(memory, error_ppm=evidence or None, error_until_ms=until_ms if evidence else None)
    if now < 1.0:
        return Suspicion(remembered)
    told = f"{own.failed} of {own.requests} requests failed in {outcomes.span_s:.0f} s, {usual[1]}"
    return Suspicion(remembered, told, own.failed / own.requests)


def _scores(memory: EngineMemory, outcomes: Outcomes, usual: float, settings: SolverSettings) -> tuple[float, float]:
    """Give S as a share of its threshold: after the final panes, and after all; both at most 1."""
    threshold = math.log(settings.error_once_in)
    rise, drift = math.log(settings.error_ratio), math.log1p((settings.error_ratio - 1.0) * usual)
    share, until_ms = (memory.error_ppm or 0) / PPM, memory.error_until_ms
    if until_ms is not None and outcomes.panes[-1].end_ms < until_ms:
        share, until_ms = 0.0, None  # counted of another life of the state
    kept = share
    for pane in outcomes.panes:
        if until_ms is not None and pane.end_ms <= until_ms:
            continue
        change = (pane.failed * rise - (pane.succeeded + pane.failed) * drift) / threshold
        share = min(max(share + change, 0.0), 1.0)
        if pane.is_final:
            kept = share
    return kept, share
