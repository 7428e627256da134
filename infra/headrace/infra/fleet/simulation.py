"""The simulation: arrivals -> Router.route() -> network -> engine -> network -> one outcome per request.

    arrive ─ route ─┬─ refused by the router                                             REFUSED
                    └─ rtt/2 ─ engine ─┬─ admitted, or queued until a slot is free
                                       │    └─ TTFT + tokens x TBOT ─ rtt/2 ─────────────ANSWERED
                                       └─ turned away, or lost ─ rtt/2 ─ retry? ─ route  ... REFUSED | FAILED

Each second of virtual time every engine publishes its signals (a dead or silent one nothing) and every cluster probes
every site, each at a phase of its own; demand is reported on the whole second. Time is given by `run_until`; the same
scenario, routers, commands and seed give the same records to the last byte.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from numpy.random import Generator

from headrace.dataplane.decision import Outcome
from headrace.dataplane.router import Router
from headrace.infra.fleet import commands as do
from headrace.infra.fleet.engine import Admitted, Lost, SimulatedEngine, TurnedAway
from headrace.infra.fleet.engine_signals import signals_record
from headrace.infra.fleet.gateway import Gateway
from headrace.infra.fleet.outcomes import Tally
from headrace.infra.fleet.request import Attempt, Ended, EngineRefusal, Kind, Request
from headrace.infra.fleet.round_trips import round_trip
from headrace.infra.fleet.scenario import Scenario
from headrace.infra.fleet.script import Timed
from headrace.infra.fleet.sink import Sink
from headrace.infra.fleet.timeline import Timeline
from headrace.infra.fleet.trace import Arrival
from headrace.schemas.signals import EngineStatus, Health, NetworkProbe
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK

PERIOD_S = 1.0
_NEVER_TAKEN = frozenset(
    {
        EngineRefusal.CONNECTION_REFUSED,
        EngineRefusal.NO_READY_REPLICA,
        EngineRefusal.QUEUE_FULL,
    }
)

Listener = Callable[[Request, Ended], None]


class Simulation:
    """A running fleet. Single-threaded; what it holds may be read between two calls of `run_until`.

    Args:
        scenario: what there is.
        routers: the router of each cluster, by the cluster's name.
        sink: takes the records.
        start_ms: the instant of virtual time 0, milliseconds since the epoch.
        rng: the seeded generator that everything drawn here comes from.

    Attributes:
        reports_demand: whether the routers' demand goes to the sink; False where reporters of their own publish it.
    """

    def __init__(
        self, scenario: Scenario, routers: Mapping[str, Router], sink: Sink, start_ms: int, rng: Generator
    ) -> None:
        self.scenario = scenario
        self.start_ms = start_ms
        self.timeline = Timeline()
        self.tally = Tally()
        self.listeners: list[Listener] = [self.tally.end]
        self.reports_demand = True
        self._sink = sink
        self._open_to_arrivals = False
        self._coming: dict[str, Iterator[Arrival]] = {}
        self._numbers = 0
        sites = sorted({setup.spec.site for setup in scenario.engines})
        engine_dice = rng.spawn(len(scenario.engines))
        self.engines = {
            setup.spec.engine_id: SimulatedEngine(setup.spec, setup.replicas, setup.curve, scenario.times, dice)
            for setup, dice in zip(scenario.engines, engine_dice, strict=True)
        }
        self.gateways: dict[str, Gateway] = {}
        for spec in scenario.clusters:
            session_dice, *link_dice = rng.spawn(1 + len(sites))
            links = {site: round_trip(spec.region, site, d) for site, d in zip(sites, link_dice, strict=True)}
            router = routers[spec.name]
            self.gateways[spec.name] = Gateway(spec, scenario.model, router, links, self.tally)
            self._coming[spec.name] = scenario.arrivals(spec, scenario.mean_tokens, session_dice)
        self._begin_periods(rng)

    @property
    def now_ms(self) -> int:
        """Virtual time as milliseconds since the epoch."""
        return self.start_ms + round(self.timeline.now_s * 1000)

    def run_until(self, until_s: float) -> None:
        """Let virtual time pass up to `until_s`."""
        self.timeline.run_until(until_s)

    def start_arrivals(self) -> None:
        """Let requests arrive from now on; until then engines and probes publish, and nobody asks for anything."""
        self._open_to_arrivals = True
        for name, gateway in self.gateways.items():
            self._schedule_arrival(gateway, self._coming[name])

    def drain(self, limit_s: float = 120.0) -> None:
        """Stop arrivals, and let time pass until every request has ended, at most `limit_s`."""
        self._open_to_arrivals = False
        until_s = self.timeline.now_s + limit_s
        while self.tally.open and self.timeline.now_s < until_s:
            self.run_until(self.timeline.now_s + PERIOD_S)

    # --- requests ---------------------------------------------------------------------------------------------------

    def _schedule_arrival(self, gateway: Gateway, coming: Iterator[Arrival]) -> None:
        arrival = next(coming, None)
        if arrival is None:
            return
        gap_s = arrival.gap / (gateway.spec.rate_rps * gateway.surge)
        self.timeline.at(self.timeline.now_s + gap_s, partial(self._arrive, gateway, arrival, coming))

    def _arrive(self, gateway: Gateway, arrival: Arrival, coming: Iterator[Arrival]) -> None:
        if not self._open_to_arrivals:
            return
        self._numbers += 1
        request = Request(
            number=self._numbers,
            cluster=gateway.spec.name,
            arrived_s=self.timeline.now_s,
            session=arrival.session.encode(),
            input_tokens=arrival.input_tokens,
            output_tokens=arrival.output_tokens,
        )
        self.tally.arrive(request)
        self._send(gateway, request, (), None)
        self._schedule_arrival(gateway, coming)

    def _send(
        self, gateway: Gateway, request: Request, failed_before: tuple[str, ...], because: EngineRefusal | None
    ) -> None:
        decision = gateway.choose(request, failed_before, self.now_ms)
        if decision.outcome is not Outcome.ROUTED or decision.engine_id is None:
            if because is None:
                self._end(request, Ended(Kind.REFUSED, decision.reason, None, None, None, 0))
            else:
                self._end_unserved(request, failed_before, because)
            return
        link = gateway.links[self.engines[decision.engine_id].spec.site]
        attempt = Attempt(request, decision.engine_id, link.draw_s(), failed_before, decision)
        self.timeline.at(self.timeline.now_s + attempt.round_trip_s / 2, partial(self._reach, gateway, attempt))

    def _reach(self, gateway: Gateway, attempt: Attempt) -> None:
        engine = self.engines[attempt.engine_id]
        outcome = engine.offer(self.timeline.now_s, attempt)
        if isinstance(outcome, Admitted):
            self._schedule_finish(engine, outcome)
        elif isinstance(outcome, TurnedAway):
            self._tell_later(gateway, attempt, outcome.reason)

    def _schedule_finish(self, engine: SimulatedEngine, admitted: Admitted) -> None:
        self.timeline.at(admitted.finish_s, partial(self._finish, engine, admitted))

    def _finish(self, engine: SimulatedEngine, admitted: Admitted) -> None:
        ended, next_ones = engine.finish(self.timeline.now_s, admitted)
        for one in next_ones:
            self._schedule_finish(engine, one)
        if ended:
            back_s = admitted.attempt.round_trip_s / 2
            self.timeline.at(self.timeline.now_s + back_s, partial(self._answer, admitted))

    def _answer(self, admitted: Admitted) -> None:
        attempt = admitted.attempt
        request = attempt.request
        latency_s = self.timeline.now_s - request.arrived_s
        ttft_s = admitted.first_token_s + attempt.round_trip_s / 2 - request.arrived_s
        tries = 1 + len(attempt.failed_before)
        self.gateways[request.cluster].answered(request, latency_s - ttft_s, self.now_ms)
        ended = Ended(Kind.ANSWERED, "OK", attempt.engine_id, latency_s, ttft_s, tries, attempt.decision)
        self._end(request, ended)

    def _tell_later(self, gateway: Gateway, attempt: Attempt, reason: EngineRefusal) -> None:
        at_s = self.timeline.now_s + attempt.round_trip_s / 2
        self.timeline.at(at_s, partial(self._turned_away, gateway, attempt, reason))

    def _turned_away(self, gateway: Gateway, attempt: Attempt, reason: EngineRefusal) -> None:
        gateway.learn(attempt.engine_id, reason)
        gateway.turned_away(attempt.request, reason, self.now_ms)
        failed = (*attempt.failed_before, attempt.engine_id)
        if gateway.may_retry(failed, reason):
            self._send(gateway, attempt.request, failed, reason)
        else:
            self._end_unserved(attempt.request, failed, reason)

    def _end_unserved(self, request: Request, failed: tuple[str, ...], reason: EngineRefusal) -> None:
        kind = Kind.REFUSED if reason in _NEVER_TAKEN else Kind.FAILED
        self._end(request, Ended(kind, reason, failed[-1], None, None, len(failed)))

    def _end(self, request: Request, ended: Ended) -> None:
        for listener in self.listeners:
            listener(request, ended)

    # --- commands ---------------------------------------------------------------------------------------------------

    def command(self, command: do.Command) -> None:
        """Do one thing to the fleet, now."""
        if isinstance(command, do.Phase):
            self.tally.phase = command.name
        elif isinstance(command, do.Surge):
            self.gateways[command.cluster].surge = command.factor
        else:
            self._engine_command(self.engines[command.engine_id], command)

    def schedule(self, timed: Timed, from_s: float) -> None:
        """Do one thing of a script at its time, counted from `from_s`."""
        self.timeline.at(from_s + timed.at_s, partial(self.command, timed.command))

    def _engine_command(self, engine: SimulatedEngine, command: do.EngineCommand) -> None:
        now_s = self.timeline.now_s
        match command:
            case do.Kill():
                self._lose(engine.kill(now_s))
            case do.Revive():
                engine.revive(now_s)
            case do.Restart():
                self._lose(engine.kill(now_s))
                self.timeline.at(now_s + engine.times.down_s, partial(self.command, do.Revive(command.engine_id)))
            case do.Slow(_, factor):
                engine.slow = factor
            case do.Errors(_, share):
                engine.error_share = share
            case do.Silence():
                engine.silent = True
            case do.Heal():
                engine.heal()
            case do.Replicas(_, count):
                self._lose(engine.scale(now_s, count))

    def _lose(self, lost: tuple[Lost, ...]) -> None:
        for one in lost:
            self._tell_later(self.gateways[one.attempt.request.cluster], one.attempt, one.reason)

    # --- once a second ----------------------------------------------------------------------------------------------

    def _begin_periods(self, rng: Generator) -> None:
        """Give each engine and each cluster's probes a phase of their own, in whole ms: nothing real is in step."""
        for engine in self.engines.values():
            self.timeline.every(PERIOD_S, partial(self._engine_period, engine), int(rng.integers(1, 1001)) / 1000)
        for gateway in self.gateways.values():
            self.timeline.every(PERIOD_S, partial(self._probe, gateway), int(rng.integers(1, 1001)) / 1000)
        self.timeline.every(PERIOD_S, self._report_demand)

    def _engine_period(self, engine: SimulatedEngine) -> None:
        for admitted in engine.fill(self.timeline.now_s):
            self._schedule_finish(engine, admitted)
        self._publish(engine)

    def _probe(self, gateway: Gateway) -> None:
        for site, link in gateway.links.items():
            probe = NetworkProbe(gateway.spec.name, site, f"{gateway.spec.name}/probe", self.now_ms, link.draw_s())
            self._sink.put(SIGNALS_NETWORK, probe, self.now_ms)
        for engine_id in sorted(gateway.known_down):
            rtt_s = gateway.links[self.engines[engine_id].spec.site].draw_s()
            self.timeline.at(self.timeline.now_s + rtt_s, partial(self._reprobe, gateway, engine_id))

    def _report_demand(self) -> None:
        for gateway in self.gateways.values():
            gateway.router.latencies.close(self.now_ms)  # engines tell their own; what gateways see goes nowhere here
            for demand in gateway.router.demand.close(self.now_ms) if self.reports_demand else ():
                self._sink.put(SIGNALS_DEMAND, demand, self.now_ms)

    def _reprobe(self, gateway: Gateway, engine_id: str) -> None:
        if self.engines[engine_id].alive:
            gateway.answers_again(engine_id)

    def _publish(self, engine: SimulatedEngine) -> None:
        now_s = self.timeline.now_s
        since_ms = self.start_ms + round(engine.observed.since_s * 1000)
        if not engine.alive:
            return
        distributions = engine.observed.take_until(now_s)
        outcomes = engine.observed.take_outcomes(distributions)
        if engine.silent:
            return
        ready = engine.ready(now_s)
        status = EngineStatus(
            health=Health.HEALTHY,
            replicas_desired=engine.desired,
            replicas_ready=ready,
            replicas_reporting=ready,
            running=float(engine.running),
            waiting=float(engine.waiting),
            kv_usage=min(1.0, engine.running / (ready * engine.curve.slots)) if ready else 0.0,
        )
        record = signals_record(engine.spec.engine_id, (since_ms, self.now_ms), distributions, status, outcomes)
        self._sink.put(SIGNALS_ENGINE, record, self.now_ms)
