"""One variant's ticks -> its score. Streaming: a tick waits for hindsight, stands until the next one, is forgotten.

    seconds of a tick = time to the next one; of the last, its snapshot's period
    a gap             = ticks further apart than `gap_periods` periods: only one period of it is scored

Besides the nominal world, two more run beside it, whose profiles are slower and faster by `profile_error`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from headrace.replay.core.played import PlayedTick
from headrace.replay.score.bins import Bin, Bins, Pair, added
from headrace.replay.score.fleet_model import engines_of
from headrace.replay.score.groups import KINDS, Cells, Groups
from headrace.replay.score.hindsight import Hindsight
from headrace.replay.score.latency_mass import CELLS, Floats, Ints, cells_of, mass_of, no_mass
from headrace.replay.score.looking_back import LookingBack
from headrace.replay.score.measured import NOTHING_MEASURED, MeasuredFleet
from headrace.replay.score.movement import Reversals, moved_share
from headrace.replay.score.placement import Numbers, Placement, Placer, demand_of, engine_numbers
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.slowness import Slowness
from headrace.replay.score.sums import Of, no_sums
from headrace.replay.score.tick_sums import tick_sums
from headrace.replay.score.variant_score import VariantScore, WorldScore
from headrace.replay.score.warmth import Warmth
from headrace.replay.score.witnesses import Witnesses
from headrace.replay.score.world import Happened, World
from headrace.solver.core.program.layout import sums as add_up

if TYPE_CHECKING:
    from headrace.schemas.weights import Snapshot

WATCHED_ROUTES = 6
"""Routes whose weights are kept over time: those with the most demand at the first tick that has any."""
MOST_POLICIES = 8
"""Changes of policy or settings within a run that are kept; a run has none but where it was recorded so."""


class VariantScorer:
    """Scores one variant while it is played.

    Args:
        name: of the variant.
        settings: what is assumed.
        measured: what history shows of the fleet: lengths of answers, how they spread.
    """

    def __init__(
        self, name: str, settings: ScoreSettings | None = None, measured: MeasuredFleet = NOTHING_MEASURED
    ) -> None:
        self._name = name
        self._settings = settings or ScoreSettings()
        self._factors = np.array(measured.spread.factors)
        self._tokens = measured.output_tokens
        self._numbers = Numbers()
        self._placer = Placer(self._numbers)
        self._slowness = Slowness(self._settings.slow_above)
        self._warmth = Warmth(self._settings.turn_s)
        self._reversals = Reversals(self._settings.reversal_ppm)
        self._bins = Bins(self._settings.bin_s, self._settings.max_bins)
        self._witnesses = Witnesses()
        self._worlds = tuple(World(self._settings, slower) for slower in self._slower())
        self._sums = [no_sums() for _ in self._worlds]
        self._mass = [no_mass() for _ in self._worlds]
        self._ttft, self._tbot = no_mass(), no_mass()
        self._groups = [Groups(kind) for kind in KINDS]
        self._flows: dict[str, Floats] = {}
        self._watched: tuple[str, ...] = ()
        self._slow: dict[str, float] = {}
        self._ticks = 0
        self._from_ms = self._to_ms = 0
        self._back = LookingBack()
        self._hindsight = Hindsight(round(1000 * self._settings.hindsight_s))
        self._newest_ms: int | None = None
        self._standing: tuple[PlayedTick, frozenset[str]] | None = None
        self._before: Snapshot | None = None
        self._policy = ""
        self._rules = ("", "")
        self._policies: list[tuple[int, str]] = []

    def add(self, tick: PlayedTick) -> None:
        """Take the next tick.

        Raises:
            ValueError: it is not later than the one before.
        """
        if self._newest_ms is not None and tick.now_ms <= self._newest_ms:
            raise ValueError(f"now_ms is {tick.now_ms}; the tick before is at {self._newest_ms}")
        self._newest_ms = tick.now_ms
        self._back.see(tick.told)
        for known, gone in self._hindsight.add(tick):
            self._next(known, gone)

    def finish(self) -> VariantScore:
        """Let the last tick stand for its period, and give the score. Of no tick, a score of nothing."""
        for known, gone in self._hindsight.rest():
            self._next(known, gone)
        if self._standing is not None:
            self._stand(*self._standing, self._standing[0].snapshot.commit.period_ms)
            self._standing = None
        return VariantScore(
            name=self._name,
            policy=self._policy,
            from_ms=self._from_ms,
            to_ms=self._to_ms,
            ticks=self._ticks,
            bin_ms=self._bins.width_ms,
            bins=tuple(self._bins.ordered()),
            engines=tuple(self._numbers.ids),
            sums=self._sums[0],
            mass=self._mass[0],
            ttft=self._ttft,
            tbot=self._tbot,
            groups={groups.kind: dict(sorted(groups.groups.items())) for groups in self._groups},
            slower=WorldScore(self._sums[1], self._mass[1]),
            faster=WorldScore(self._sums[2], self._mass[2]),
            flows=tuple(sorted(self._flows.items())),
            watched=self._watched,
            witnesses=self._witnesses.kept(),
            slow=dict(sorted(self._slow.items())),
            policies=tuple(self._policies),
        )

    # --- one tick ---------------------------------------------------------------------------------------------------

    def _slower(self) -> tuple[float, float, float]:
        error = self._settings.profile_error
        return 1.0, 1.0 + error, 1.0 - error

    def _next(self, tick: PlayedTick, gone: frozenset[str]) -> None:
        if self._standing is None:
            self._from_ms = tick.now_ms
        else:
            last = self._standing[0]
            self._stand(*self._standing, tick.now_ms - last.now_ms)
            self._before = last.snapshot
        self._standing = (tick, gone)

    def _stand(self, tick: PlayedTick, gone: frozenset[str], span_ms: int) -> None:
        period_ms = max(tick.snapshot.commit.period_ms, 1)
        missing_ms = span_ms - period_ms if span_ms > self._settings.gap_periods * period_ms else 0
        seconds = (span_ms - missing_ms) / 1000.0
        self._policy = tick.snapshot.commit.policy
        self._ticks += 1
        self._to_ms = tick.now_ms + span_ms
        self._witnesses.add(tick, tick.previous or self._before)
        self._see_policy(tick)
        moved, reversals = self._move(tick)
        tokens = self._back.tokens(tick.now_ms, self._tokens)
        self._slowness.see(tick.problem, tick.now_ms, tokens)
        for engine in self._slowness.slow:
            self._slow[engine] = self._slow.get(engine, 0.0) + seconds
        placement = self._placer.place(tick.problem, tick.snapshot)
        numbers = engine_numbers(tick.problem, self._numbers)
        engines = engines_of(tick.problem, numbers, self._slowness, tokens, gone)
        planned, to_ms = demand_of(tick.problem, placement.routes), tick.now_ms + span_ms - missing_ms
        demand = self._back.demand([route.route for route in placement.routes], planned, tick.now_ms, to_ms)
        cold = np.array([self._warmth.pass_time(route.key, seconds) for route in placement.routes])
        self._watch(placement, demand)
        extra = no_sums()
        extra[Of.MOVED], extra[Of.REVERSALS], extra[Of.MISSING] = moved, reversals, missing_ms / 1000.0
        for i, world in enumerate(self._worlds):
            happened = world.play(placement, engines, demand, cold, seconds)
            sums = tick_sums(happened, placement, engines, seconds) + extra
            whole = happened.fixed_s[:, None] + happened.decode_s[:, None] * self._factors[None, :]
            cells = cells_of(whole)
            spread = np.repeat(happened.served * seconds / len(self._factors), len(self._factors))
            mass = add_up(cells.ravel(), spread, CELLS)
            self._sums[i] = self._sums[i] + sums
            self._mass[i] = self._mass[i] + mass
            if i == 0:
                one = Bin(sums, mass, seconds * happened.behaviour.load, self._shares(placement, seconds))
                one.engine_mass, one.engine_sums = self._inside(placement, happened, seconds)
                self._bins.at(tick.now_ms).add(one)
                self._keep(placement, happened, cells, seconds)

    def _see_policy(self, tick: PlayedTick) -> None:
        commit = tick.snapshot.commit
        if (commit.policy, commit.policy_hash) != self._rules:
            self._rules = commit.policy, commit.policy_hash
            self._policies.append((tick.now_ms, commit.policy))
            del self._policies[MOST_POLICIES:]

    def _move(self, tick: PlayedTick) -> tuple[float, int]:
        """Give the share of traffic that this tick's weights move, and how many of its changes turn back."""
        before, after = self._before, tick.snapshot
        if before is None or before.routes is after.routes:
            return 0.0, 0
        old = {route.key: route for route in before.routes}
        turned = 0
        for route in after.routes:
            was = old.get(route.key)
            if was is not None and was is not route:
                turned += self._reversals.add(was, route)
                self._warmth.move(was, route)
        asked = {row.route: row.demand_rps for row in tick.problem.rows}
        return moved_share(before, after, asked), turned

    def _watch(self, placement: Placement, demand: Floats) -> None:
        if self._watched or demand.sum() <= 0.0:
            return
        order = sorted(range(len(demand)), key=lambda r: (-float(demand[r]), placement.routes[r].key))
        self._watched = tuple(str(placement.routes[r].route) for r in order[:WATCHED_ROUTES])

    def _shares(self, placement: Placement, seconds: float) -> dict[Pair, float]:
        out: dict[Pair, float] = {}
        for r, route in enumerate(placement.routes):
            name = str(route.route)
            if name in self._watched:
                pairs = placement.route == r
                kept = seconds * (1.0 - float(placement.shed[r]))
                for e, share in zip(placement.engine[pairs].tolist(), placement.share[pairs].tolist(), strict=True):
                    if share > 0.0:
                        out[name, self._numbers.ids[e]] = kept * share
        return out

    def _keep(self, placement: Placement, happened: Happened, whole: Ints, seconds: float) -> None:
        """Keep what only the nominal world is asked for."""
        requests, behaviour = happened.served * seconds, happened.behaviour
        tbot_s = behaviour.tbot_s[placement.engine]
        cells = Cells(whole, cells_of(happened.ttft_s), cells_of(tbot_s))
        self._ttft += add_up(cells.ttft, requests, CELLS)
        self._tbot += add_up(cells.tbot, requests, CELLS)
        for groups in self._groups:
            groups.add(placement, happened, cells, seconds)
        self._flow(placement, requests, len(happened.behaviour.load))

    def _inside(self, placement: Placement, happened: Happened, seconds: float) -> tuple[Floats, Floats]:
        """Give requests by their time in the engine, of all engines; and by engine, (2, E), their number and time."""
        requests, count = happened.served * seconds, len(happened.behaviour.load)
        inside = happened.fixed_s - placement.network_s
        told = inside[:, None] + happened.decode_s[:, None] * self._factors[None, :]
        mass = mass_of(told, np.repeat(requests[:, None] / len(self._factors), len(self._factors), 1))
        times = requests * (inside + happened.decode_s)
        return mass, np.array([add_up(placement.engine, weight, count) for weight in (requests, times)])

    def _flow(self, placement: Placement, requests: Floats, count: int) -> None:
        clusters = sorted({route.cluster for route in placement.routes})
        number = {cluster: i for i, cluster in enumerate(clusters)}
        of_route = np.array([number[route.cluster] for route in placement.routes], dtype=np.int64)
        index = of_route[placement.route] * count + placement.engine
        flows = add_up(index, requests, len(clusters) * count).reshape(len(clusters), count)
        for cluster, flow in zip(clusters, flows, strict=True):
            self._flows[cluster] = added(self._flows.get(cluster, np.zeros(0)), flow)


def score_variant(
    name: str,
    ticks: Iterable[PlayedTick],
    settings: ScoreSettings | None = None,
    measured: MeasuredFleet = NOTHING_MEASURED,
) -> VariantScore:
    """Score a whole run."""
    scorer = VariantScorer(name, settings, measured)
    for tick in ticks:
        scorer.add(tick)
    return scorer.finish()
