"""Settings of the solver, with their bounds. Pure: `headrace.infra.configuration` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from headrace.schemas.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ClassSettings:
    """One request class: its shedding tier (0 = shed last), what an engine must offer to serve it, and its work.

    `work` is what a request costs an engine on average, relative to those that capacities and profiles were measured
    with: one of 4 counts as four of them.
    """

    tier: Annotated[int, Ge(0), Le(9)] = 0
    requires: tuple[str, ...] = ()
    residency: tuple[str, ...] = ()
    work: Annotated[float, Ge(0.001), Le(1000)] = 1.0


def _default_classes() -> Mapping[str, ClassSettings]:
    return {"default": ClassSettings()}


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """Settings of the program and of the worker's tick.

    Attributes:
        period_ms: time between ticks.
        ttl_ms: how long after its tick a snapshot stays valid without another commit.
        policy: file name under `headrace.solver.core.policies`.
        move_price_ms: price of moving a request off its warm KV cache, ms per request.
        stay_within: previous weights stand where the best answer is better by less than this, relative; 0 for never.
        segments: chords per engine's latency curve; columns are per group of equal engines, so many cost little.
        anchors: loads, where the previous weights put a curve's engines, at which chords are placed anew; 0 for none.
        sift_above: a program of more pairs of route and pool than this is sifted: solved exactly, few at a time.
        engine_cost: `convex` counts network and engine latency; `none` the network alone, within hard capacity.
        ageing_after_ms: silence after which an engine's usable capacity begins to fade.
        expired_after_ms: silence after which an engine is excluded as STALE.
        missed_ageing: reports missed after which an engine begins to fade, where its period is known.
        missed_expired: reports missed after which it is excluded.
        lost_after_ms: silence of all engines together after which their telemetry counts as lost.
        degraded_factor: share of capacity left to an engine that calls itself DEGRADED.
        load_spread: how far an engine's load swings about what is planned, standard deviation by load: the cost is its
            mean over that, so that room is kept where a curve is steep; 0 for a load that stands still.
        headroom_load: share of effective capacity above which the headroom price is added.
        headroom_price_ms: surcharge on the segments above `headroom_load`, ms per request.
        trim_power: share of a profile's error, as a logarithm, that the trim takes over in a trim period.
        trim_period_ms: see above.
        trim_bound: the trim stays within 1 / this and this; 1 for no trim.
        outlier_ratio: how many times slower than its peers' median an engine is before it may be an outlier.
        outlier_mads: how many deviations (median absolute, scaled to sigma) above it, too.
        error_ratio: how many times the usual odds of a failed request are found soonest.
        error_tolerated: share of failed requests that is always usual, whatever an engine's peers do.
        error_once_in: requests of an engine at the usual share between two false alarms, on average at least.
        outlier_half_ms: time in which the usable capacity of an outlier, or an engine that fails requests, halves.
        outlier_recovery_ms: time in which it doubles again afterwards.
        outlier_max_share: most of a pool's capacity that may be penalised, one engine in any case; of pools of one or
            two, most of a model's. 0 for no penalties.
        panic_share: share of a pool's engines (a model's, for pools of one or two), there and not failing, below which
            penalties are ignored.
        cold_start_share: share of capacity that an engine begins with when it comes back.
        cold_ramp_ms: time in which it gets all of it; 0 for no ramp.
        measured_capacity_least: least share of its stated capacity that a full engine may be measured to have; 1 to
            believe what is stated.
        measured_capacity_probe: share of its stated capacity that such an engine is given back per second.
        backlog_drain_ms: time in which a standing queue is to drain; 0 to leave queues alone.
        failover_spare: times the load of a route's busiest engine that the others of its failover have to spare; 0 for
            no failover: the sessions of an engine that is out go by the other weights then.
        surge_load: share of an engine's capacity up to which a route may send it more than planned, where more arrives
            than the signals have told; 0 to leave surges where they are.
        probe_share: share of capacity that an engine of which nothing is known may be given for nothing, so that it is
            measured; 0 for none.
        refine_above: certified gap above which chords are halved where the answer is, and the program is solved again;
            1 for never. Not where programs are sifted.
        max_step: share of a route's traffic that one engine pool may gain or lose of it in a tick without a further
            price; 1 for no bound.
        step_price_ms: price of what moves beyond it, ms per request, on either side.
        proportional_gain: of the policy `proportional`: change of a weight per second at an error of its whole score.
        pid_gain: of the policy `pid`: change of a weight per change of its error.
        pid_integral: of the policy `pid`: change of a weight per second and error.
        pid_max_step: of the policy `pid`: the most that a weight changes in a tick, as a share of it.
        retry_ratio_max: retry budget of an idle fleet, per first attempt.
        retry_load_low: utilisation up to which the full budget stands.
        retry_load_high: utilisation from which the budget is zero.
        first_wait_ms: how long the very first snapshot waits, once there is anything to solve, for engines and round
            trips that nothing has been heard of yet.
        keyframe_ms: how often the `snapshots` topic gets every route again, changed or not, and the decision record the
            settings: where a replay can begin.
        threads: parts of the program that are solved beside each other; the answer does not depend on it.
        leader_election: whether a second worker stands by, through a consumer group on the weights topic; without it
            the worker that started last takes over, and the one before it ends.
        leader_session_ms: silence after which a leader that was killed is replaced by one that stands by.
        metrics_port: where Prometheus finds the solver's metrics; 0 = nowhere.
        metrics_host: the address that the metrics are served at.
        classes: request classes by name.
    """

    period_ms: Annotated[int, Ge(50), Le(600_000)] = 500
    ttl_ms: Annotated[int, Ge(1_000), Le(86_400_000)] = 60_000
    policy: str = "lp"
    move_price_ms: Annotated[float, Ge(0), Le(10_000)] = 30.0
    stay_within: Annotated[float, Ge(0), Le(0.1)] = 0.001
    segments: Annotated[int, Ge(2), Le(64)] = 24
    anchors: Annotated[int, Ge(0), Le(16)] = 0
    sift_above: Annotated[int, Ge(0), Le(1_000_000_000)] = 50_000
    engine_cost: Literal["convex", "none"] = "convex"
    ageing_after_ms: Annotated[int, Ge(500)] = 5_000
    expired_after_ms: Annotated[int, Ge(1_000)] = 15_000
    missed_ageing: Annotated[float, Ge(1), Le(100)] = 3.0
    missed_expired: Annotated[float, Ge(1), Le(100)] = 6.0
    lost_after_ms: Annotated[int, Ge(1_000), Le(600_000)] = 30_000
    degraded_factor: Annotated[float, Ge(0), Le(1)] = 0.5
    load_spread: Annotated[float, Ge(0), Le(0.5)] = 0.1
    headroom_load: Annotated[float, Gt(0), Le(1)] = 0.95
    headroom_price_ms: Annotated[float, Ge(0), Le(1e6)] = 0.0
    trim_power: Annotated[float, Ge(0), Le(1)] = 0.1
    trim_period_ms: Annotated[int, Ge(100), Le(600_000)] = 2_000
    trim_bound: Annotated[float, Ge(1), Le(10)] = 2.0
    outlier_ratio: Annotated[float, Gt(1), Le(100)] = 1.5
    outlier_mads: Annotated[float, Ge(0), Le(100)] = 5.0
    error_ratio: Annotated[float, Gt(1), Le(1_000)] = 5.0
    error_tolerated: Annotated[float, Gt(0), Le(0.5)] = 0.01
    error_once_in: Annotated[float, Ge(100), Le(1e15)] = 1e6
    outlier_half_ms: Annotated[int, Ge(100), Le(600_000)] = 5_000
    outlier_recovery_ms: Annotated[int, Ge(100), Le(3_600_000)] = 30_000
    outlier_max_share: Annotated[float, Ge(0), Le(1)] = 0.3
    panic_share: Annotated[float, Ge(0), Le(1)] = 0.5
    cold_start_share: Annotated[float, Gt(0), Le(1)] = 0.3
    cold_ramp_ms: Annotated[int, Ge(0), Le(600_000)] = 5_000
    measured_capacity_least: Annotated[float, Gt(0), Le(1)] = 0.05
    measured_capacity_probe: Annotated[float, Ge(0), Le(1)] = 0.003
    backlog_drain_ms: Annotated[int, Ge(0), Le(600_000)] = 10_000
    failover_spare: Annotated[float, Ge(0), Le(100)] = 1.5
    surge_load: Annotated[float, Ge(0), Le(1)] = 0.85
    probe_share: Annotated[float, Ge(0), Le(0.2)] = 0.0
    refine_above: Annotated[float, Gt(0), Le(1)] = 0.002
    max_step: Annotated[float, Gt(0), Le(1)] = 1.0
    step_price_ms: Annotated[float, Ge(0), Le(10_000)] = 200.0
    proportional_gain: Annotated[float, Ge(0), Le(100)] = 0.1
    pid_gain: Annotated[float, Ge(0), Le(100)] = 0.1
    pid_integral: Annotated[float, Ge(0), Le(100)] = 0.05
    pid_max_step: Annotated[float, Gt(0), Le(0.5)] = 0.05
    retry_ratio_max: Annotated[float, Ge(0), Le(1)] = 0.1
    retry_load_low: Annotated[float, Ge(0), Le(1)] = 0.8
    retry_load_high: Annotated[float, Ge(0), Le(1)] = 0.95
    first_wait_ms: Annotated[int, Ge(0), Le(600_000)] = 3_000
    keyframe_ms: Annotated[int, Ge(1_000), Le(86_400_000)] = 300_000
    threads: Annotated[int, Ge(1), Le(64)] = 2
    leader_election: bool = True
    leader_session_ms: Annotated[int, Ge(6_000), Le(300_000)] = 6_000
    metrics_port: Annotated[int, Ge(0), Le(65_535)] = 0
    metrics_host: str = "127.0.0.1"
    classes: Mapping[str, ClassSettings] = field(default_factory=_default_classes)

    def __post_init__(self) -> None:
        """Hold the settings against each other.

        Raises:
            InvalidInputError: an interval is upside down, or a snapshot would expire before the next one.
        """
        ordered: tuple[tuple[str, float, str, float], ...] = (
            ("ageing_after_ms", self.ageing_after_ms, "expired_after_ms", self.expired_after_ms),
            ("missed_ageing", self.missed_ageing, "missed_expired", self.missed_expired),
            ("retry_load_low", self.retry_load_low, "retry_load_high", self.retry_load_high),
            ("2 x period_ms", 2 * self.period_ms, "ttl_ms", self.ttl_ms),
        )
        problems = [f"solver.{low} is {a}; at most {high}, {b}" for low, a, high, b in ordered if a > b]
        if problems:
            raise InvalidInputError("solver settings", tuple(problems))
