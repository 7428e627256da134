"""A variant's run, summed up: a frozen value that may be pickled, so each variant may have a process of its own."""

import math
from dataclasses import dataclass

from headrace.replay.score.bins import Bin
from headrace.replay.score.groups import Group
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.users_met import UsersMet
from headrace.replay.score.witnesses import Witness


@dataclass(frozen=True, slots=True, eq=False)
class WorldScore:
    """What became of the same weights where profiles are off: sums and requests by latency."""

    sums: Floats
    mass: Floats


@dataclass(frozen=True, slots=True)
class SessionHits:
    """Requests that continue a session, and those of them that met the engine that served it last."""

    returning: int
    hits: int

    @property
    def lost_percent(self) -> float | None:
        """Returning requests that met another engine, %; None where none returned."""
        return 100.0 * (self.returning - self.hits) / self.returning if self.returning else None


@dataclass(frozen=True, slots=True, eq=False)
class VariantScore:
    """A variant's run, summed up. Arrays over engines follow `engines`.

    Attributes:
        name: of the variant.
        policy: of its snapshots.
        from_ms, to_ms: first tick, end of the last.
        ticks: how many.
        bin_ms: length of a bin.
        bins: (instant at which it begins, sums, load and watched shares), oldest first.
        engines: ids.
        sums: over the whole run.
        ttft, tbot: requests by latency.
        groups: by kind, then name.
        slower, faster: the same run in two other worlds.
        flows: (cluster, (E,) requests).
        watched: routes whose shares the bins hold, as `cluster|model|class`.
        witnesses: a few whole ticks.
        slow: engines that history shows as slow, and for how many seconds.
        sessions: where sessions are known, what became of their warm caches; None where they are not, and the cold
            share of `sums` is from how much traffic was moved.
        policies: (instant, policy) from where on it, or its settings, were others than before; more than one where the
            recorded policy changed within the range.
        met: what simulated users met; None where the run was no simulation.
    """

    name: str
    policy: str
    from_ms: int
    to_ms: int
    ticks: int
    bin_ms: int
    bins: tuple[tuple[int, Bin], ...]
    engines: tuple[str, ...]
    sums: Floats
    mass: Floats
    ttft: Floats
    tbot: Floats
    groups: dict[str, dict[str, Group]]
    slower: WorldScore
    faster: WorldScore
    flows: tuple[tuple[str, Floats], ...]
    watched: tuple[str, ...]
    witnesses: tuple[Witness, ...]
    slow: dict[str, float]
    sessions: SessionHits | None = None
    met: UsersMet | None = None
    policies: tuple[tuple[int, str], ...] = ()

    @property
    def engine_sums(self) -> Floats:
        """Requests, and seconds in the engine x requests, by engine, (2, E)."""
        return self.inside(-math.inf, math.inf)[1]

    def inside(self, from_ms: float, to_ms: float) -> tuple[Floats, Floats]:
        """Give what was in the engines of those who left them between two instants.

        (CELLS,) requests by their time there, without the network, and (2, E) requests and seconds x requests by
        engine. A bin counts where its middle, later by its own mean time in the engine, lies in between.
        """
        kept = Bin()
        for begin_ms, each in self.bins:
            requests, times = each.engine_sums.sum(axis=1).tolist()
            left_ms = begin_ms + self.bin_ms / 2 + (1000.0 * times / requests if requests else 0.0)
            if from_ms <= left_ms < to_ms:
                kept.add(each)
        return kept.engine_mass, kept.engine_sums
