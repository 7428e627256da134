"""S <- max(0, S + failed ln R - requests k), k = ln(1 + (R - 1) p0): does an engine fail more requests than its peers?

    p0      share of failures that is usual: its peers' over the window, at the upper end of what chance leaves open,
            (f + sqrt f + 1) / n, and at least error_tolerated
    R       error_ratio: a share of R times p0's odds is found soonest; the drift k is what each request takes off
    alarm   S >= ln error_once_in, where S is held, so that it falls as soon as requests succeed

Evidence comes by requests, never by ticks: a pane of the window counts once, when it is final, and `error_until_ms`
remembers up to which. What may still grow counts for this tick alone. S of 0 needs no memory: begun anew at the oldest
pane of the window it is 0 again where it was 0. An engine without requests adds nothing, and is not judged.

Where all peers fail, failing is usual and nobody stands out; without a peer that counts its requests nobody can tell.
Peers that are known to fail do not say what is usual.

Failure mode: between p0 and about twice that S hardly rises, and an engine there is left alone for long.
Source: Page, "Continuous inspection schemes", Biometrika 1954; at p0 the mean time to a false alarm is at least
e^threshold = error_once_in requests (Lorden 1971).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.schemas.weights import PPM, EngineMemory
from headrace.solver.core.problem import Engine, Outcomes
from headrace.solver.core.protections.guarded import Guarded
from headrace.solver.settings import SolverSettings


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What an engine's outcomes say: `memory` for the next tick; `failing` is a sentence, empty where it is not."""

    memory: EngineMemory
    failing: str = ""


class _Ended(NamedTuple):
    """Requests that ended, and how many of them failed."""

    requests: int
    failed: int


def suspicions_of(guarded: Guarded, peers: Sequence[Engine], settings: SolverSettings) -> Mapping[str, Suspicion]:
    """Judge the engines of a pool by how their requests ended; only those of which that was counted."""
    counted = {
        e.engine_id: (e.outcomes, ended)
        for e in peers
        if e.outcomes is not None and (ended := _Ended(e.outcomes.requests, e.outcomes.failed)).requests
    }
    sound = {name for name in counted if guarded.memory(name).error_ppm != PPM}
    requests = sum(counted[name][1].requests for name in sound)
    failed = sum(counted[name][1].failed for name in sound)
    found: dict[str, Suspicion] = {}
    for name, (outcomes, own) in counted.items():
        if not own.failed and guarded.memory(name).error_ppm is None:
            continue  # without a failure no evidence begins: true of nearly all
        others = _Ended(requests - own.requests, failed - own.failed) if name in sound else _Ended(requests, failed)
        found[name] = _judged(guarded.memory(name), outcomes, own, others, settings)
    return found


def _judged(
    memory: EngineMemory, outcomes: Outcomes, own: _Ended, others: _Ended, settings: SolverSettings
) -> Suspicion:
    requests, failed = others
    usual = max(settings.error_tolerated, min(1.0, (failed + math.sqrt(failed) + 1.0) / requests) if requests else 1.0)
    kept, now = _scores(memory, outcomes, usual, settings)
    evidence = round(kept * PPM)
    until_ms = max((pane.end_ms for pane in outcomes.panes if pane.is_final), default=memory.error_until_ms)
    remembered = replace(memory, error_ppm=evidence or None, error_until_ms=until_ms if evidence else None)
    if now < 1.0:
        return Suspicion(remembered)
    peers = f"peers {100 * failed / requests:.1f} %" if requests else "no peer to compare with"
    return Suspicion(remembered, f"{own.failed} of {own.requests} requests failed in {outcomes.span_s:.0f} s, {peers}")


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
