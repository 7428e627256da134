"""One tick in one world: weights and demand -> what became of the requests of each pair of route and engine.

    offered[r] = demand + retries of the tick before         sent[p] = offered[r] (1 - shed[r]) share[p]
    refused[p] = sent[p] x refused share of its engine       retried at the next tick: at most retry ratio x demand[r]
    a data plane goes round an engine that does not answer: its share falls to others by the route's failover, else by
    their weights; the share of its sessions that the failover has no room for is shed
    load[e]    = sum of work x sent[p]
    end to end = network + wait + TTFT + cold x idle TTFT + factor x work x tokens x TBOT

Retries are the route's again, by the same weights: an engine that is full is met once more as often as its weight says.
Work is taken for length: a request of more work has more tokens to wait for, and its first one comes no later.
"""

from dataclasses import dataclass

import numpy as np

from headrace.replay.score.fleet_model import Behaviour, Engines, FleetModel
from headrace.replay.score.latency_mass import Floats
from headrace.replay.score.placement import Placement
from headrace.replay.score.settings import ScoreSettings
from headrace.replay.score.suspected import Bools, Met, Suspected
from headrace.solver.core.program.layout import sums as add_up


@dataclass(frozen=True, slots=True, eq=False)
class Happened:
    """One tick's outcome, RPS and seconds. `fixed_s` and `decode_s` (P,): what lengths do not change, and what they do.

    Attributes:
        behaviour: of the engines.
        first, shed, refused, retried: (R,) first attempts; refused by weights; by engines, for good; tried again.
        served: (P,) RPS.
        ttft_s: (P,) as users see it.
        fixed_s, decode_s: (P,).
        cold: (P,) RPS.
    """

    behaviour: Behaviour
    first: Floats
    shed: Floats
    refused: Floats
    retried: Floats
    served: Floats
    ttft_s: Floats
    fixed_s: Floats
    decode_s: Floats
    cold: Floats


class World:
    """A fleet model and the retries under way. Lives as long as a run."""

    def __init__(self, settings: ScoreSettings, slower: float = 1.0) -> None:
        self._model = FleetModel(settings.queue_per_slot, slower, settings.chance)
        self._cold_share = settings.cold_share
        self._retrying: dict[bytes, float] = {}
        self._suspected = Suspected()

    def play(self, placement: Placement, engines: Engines, demand: Floats, cold: Floats, seconds: float) -> Happened:
        """Let a tick's weights stand for some seconds.

        Args:
            placement: the weights.
            engines: true capacity, slowness, lengths.
            demand: (R,) first attempts a second.
            cold: (R,) share of requests whose cache is cold.
            seconds: above 0.
        """
        retrying = np.array([self._retrying.get(r.key, 0.0) for r in placement.routes]) if self._retrying else 0.0
        offered = demand + retrying
        out = self._suspected.left_out(placement)
        share, unplaced = _going_round(placement, engines, out, len(demand))
        shed = placement.shed + (1.0 - placement.shed) * unplaced
        shed_ratio = np.where(add_up(placement.route, share, len(demand)) > 0.0, shed, 1.0)
        sent = (offered * (1.0 - shed_ratio))[placement.route] * share
        work = placement.work[placement.route]
        load = add_up(placement.engine, sent * work, engines.count)
        drawn = add_up(placement.engine, sent * work * (1.0 - share), engines.count) / np.where(load > 0.0, load, 1.0)
        behaviour = self._model.step(engines, load, seconds, drawn)
        refused = sent * behaviour.refused_share[placement.engine]
        served = sent - refused
        refused_r = add_up(placement.route, refused, len(demand))
        retried = np.minimum(refused_r, placement.retry * demand)
        self._retrying = {
            route.key: float(rps) for route, rps in zip(placement.routes, retried.tolist(), strict=True) if rps > 0.0
        }
        cold_p = cold[placement.route]
        ttft_s = (
            placement.network_s
            + behaviour.ttft_s[placement.engine]
            + cold_p * self._cold_share * behaviour.idle_ttft_s[placement.engine]
        )
        decode_s = (engines.tokens * behaviour.tbot_s)[placement.engine] * work
        wait_s, waits = behaviour.wait_s[placement.engine], behaviour.waits[placement.engine]
        met = Met(ttft_s - wait_s, wait_s, waits, ttft_s + decode_s)
        self._suspected.learn(placement, served * seconds, met, seconds)
        return Happened(
            behaviour=behaviour,
            first=demand,
            shed=offered * shed_ratio,
            refused=refused_r - retried,
            retried=retried,
            served=served,
            ttft_s=ttft_s,
            fixed_s=ttft_s,
            decode_s=decode_s,
            cold=cold_p * served,
        )


def _going_round(placement: Placement, engines: Engines, out: Bools, routes: int) -> tuple[Floats, Floats]:
    """Give the shares as data planes use them, and what they shed beside, (P,) and (R,).

    None of engines that are gone, or left out while others are there; all 0 where nobody is left.
    """
    is_up = engines.capacity[placement.engine] > 0.0
    trusted = add_up(placement.route, np.where(is_up & ~out, placement.share, 0.0), routes) > 0.0
    is_there = is_up & (~out | ~trusted[placement.route])
    there = np.where(is_there, placement.share, 0.0)
    left = add_up(placement.route, there, routes)
    lost = add_up(placement.route, placement.share - there, routes)
    brought = np.where(is_there, placement.failover, 0.0)
    taken = add_up(placement.route, brought, routes)
    by_failover = (taken > 0.0)[placement.route]
    by_weight = there / np.where(left > 0.0, left, 1.0)[placement.route]
    moved = there + (lost / np.where(taken > 0.0, taken, 1.0))[placement.route] * brought
    gone = np.where(is_up, 0.0, placement.share * (1.0 - placement.kept))
    return np.where(by_failover, moved, by_weight), add_up(placement.route, gone, routes)
