"""A router through any history of snapshots, deaths, failures and crowds, held against a model of a few sets."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane_inputs import CLUSTER, MODEL, TICK_MS, TTL_MS, route_weights, snapshot
from headrace.dataplane import AttemptOutcome, Decision, DecisionReason, Outcome, Router
from headrace.dataplane.installation import Installation
from headrace.dataplane.settings import DataPlaneSettings, GuardSettings
from headrace.dataplane.slot_table import quotas
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import PPM, FallbackTarget, RouteWeights, SnapshotCommit
from thoroughness import examples

ENGINES = [f"engine-{letter}" for letter in "abcdef"]
KEYS = [f"session-{i}" for i in range(24)]
EJECTED_MAX = 0.4
GUARDS = GuardSettings(ejected_max=EJECTED_MAX, ejected_max_frozen=EJECTED_MAX, in_flight_min=1)
BURST = 3
RETRY_RATIO = 0.1
SMALL = DataPlaneSettings(
    table_size=1_021, large_table_size=2_039, large_above=4, rehash_max=2, retry_burst=BURST, guards=GUARDS
)

engine = st.sampled_from(ENGINES)
parts = st.lists(st.integers(0, 5), min_size=len(ENGINES), max_size=len(ENGINES))
outcomes = st.sampled_from(AttemptOutcome)
standing = st.sampled_from([None, True, False])
anything = st.one_of(
    st.none(), st.text(), st.binary(), st.integers(), st.floats(), st.lists(st.text()), st.just(object()), st.booleans()
)


def raw(record: RouteWeights | SnapshotCommit) -> RawRecord:
    return RawRecord("weights", 0, 0, 0, record.key, encode(record))


def engines(decisions: Mapping[str, Decision]) -> dict[str, str | None]:
    return {key: decision.engine_id for key, decision in decisions.items()}


class RouterMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.router = Router(SMALL, CLUSTER)
        self.assembler = SnapshotAssembler()
        self.now_ms = TICK_MS
        self.down: set[str] = set()
        self.weights: RouteWeights | None = None
        self.epoch, self.version = 1, 0
        self.under_way: list[Decision] = []
        self.attempts: list[int] = []
        """For each retry granted, the first attempts reported before it."""
        self.reported = 0

    def make(self, weights: list[int], excluded: set[str], epoch: int, version: int, shed: float) -> RouteWeights:
        shares = [0 if e in excluded else w for e, w in zip(ENGINES, weights, strict=True)]
        ppm = dict(zip(ENGINES, quotas(shares, PPM), strict=True))
        targets = {e: w for e, w in ppm.items() if e not in excluded}
        fallback = dict.fromkeys(ENGINES, 0) | {ENGINES[0]: PPM // 2, ENGINES[1]: PPM // 2}
        return route_weights(
            targets,
            epoch=epoch,
            version=version,
            excluded=tuple(excluded),
            fallback=fallback,
            shed_ratio=shed if any(shares) else 1.0,
            retry_ratio=RETRY_RATIO,
        )

    def publish(self, weights: RouteWeights) -> object:
        commit = snapshot(weights, tick_ms=self.now_ms).commit
        offered = [self.assembler.offer(raw(weights)), self.assembler.offer(raw(commit))]
        return offered[-1]

    # what the solver does

    @rule(
        weights=parts,
        excluded=st.sets(engine, max_size=3),
        shed=st.sampled_from([0.0, 0.0, 0.3]),
        takeover=st.integers(0, 1),
        failover=st.one_of(st.just([0] * len(ENGINES)), parts),
    )
    def a_snapshot_is_published(
        self, weights: list[int], excluded: set[str], shed: float, takeover: int, failover: list[int]
    ) -> None:
        self.epoch, self.version = self.epoch + takeover, self.version + 1
        made = self.make(weights, excluded, self.epoch, self.version, shed)
        shares = quotas([0 if e in excluded else w for e, w in zip(ENGINES, failover, strict=True)], PPM)
        brought = tuple(FallbackTarget(e, None, w) for e, w in zip(ENGINES, shares, strict=True) if w)
        self.weights = replace(made, failover=brought)
        outcome = self.publish(self.weights)
        assert isinstance(outcome, Assembled)
        assert isinstance(self.router.apply(outcome.snapshot), Installation)

    @precondition(lambda self: self.epoch > 1)
    @rule(weights=parts)
    def a_fenced_writer_publishes_what_it_had_left(self, weights: list[int]) -> None:
        before = self.router.installation
        outcome = self.publish(self.make(weights, set(), self.epoch - 1, self.version + 50, 0.0))
        assert not isinstance(outcome, Assembled)
        assert self.router.installation is before

    @precondition(lambda self: self.weights is not None)
    @rule(ratios=st.tuples(st.floats(0, 1), st.floats(0, 1)), tier=st.sampled_from([None, 0, 1]), established=standing)
    def what_is_shed_grows_with_the_ratio_and_the_tier(
        self, ratios: tuple[float, float], tier: int | None, *, established: bool | None
    ) -> None:
        assert self.weights is not None
        shed: list[set[str]] = []
        for ratio in sorted(ratios):
            self.version += 1
            weights = {t.engine_id: t.weight_ppm for t in self.weights.targets}
            assume(sum(weights.values()) > 0)
            self.weights = self.make(
                [weights.get(e, 0) for e in ENGINES],
                {e.engine_id for e in self.weights.excluded},
                self.epoch,
                self.version,
                ratio,
            )
            outcome = self.publish(self.weights)
            assert isinstance(outcome, Assembled)
            self.router.apply(outcome.snapshot)
            by_tier = [self.shed(t, established=established) for t in (0, tier, 1)]
            assert by_tier[0] <= by_tier[1] <= by_tier[2]
            assert self.shed(tier, established=True) <= self.shed(tier, established=False)
            shed.append(by_tier[1])
        # Between two snapshots the mix of new and established ones is settled anew, so only None is the ratio's alone.
        assert established is not None or shed[0] <= shed[1]

    def shed(self, tier: int | None, *, established: bool | None) -> set[str]:
        asked = {
            k: self.router.route(MODEL, key=k, tier=tier, established=established, now_ms=self.now_ms) for k in KEYS
        }
        return {key for key, decision in asked.items() if decision.reason is DecisionReason.SHED}

    # what happens to engines

    @rule(victim=engine)
    def an_engine_dies_and_only_its_sessions_move(self, victim: str) -> None:
        before, ejected = self.settled(), self.left_out_as_suspects()
        self.down.add(victim)
        self.router.set_health(victim, up=False)
        after = self.ask_all()
        if self.left_out_as_suspects() >= ejected - {victim}:
            self.only_moved_from(victim, before, after)

    @rule(victim=engine)
    def an_engine_is_up_again(self, victim: str) -> None:
        self.down.discard(victim)
        self.router.set_health(victim, up=True)

    @rule(victim=engine)
    def death_and_return_change_nothing(self, victim: str) -> None:
        if victim in self.down or self.under_way:
            return
        before = self.settled()
        self.router.set_health(victim, up=False)
        self.router.set_health(victim, up=True)
        assert engines(self.ask_all()) == engines(before)

    @rule(victim=engine)
    def an_engine_fails_until_it_is_ejected_and_only_its_sessions_move(self, victim: str) -> None:
        before, ejected = self.settled(), self.left_out_as_suspects()
        throttled = self.router.throttled(self.now_ms)
        decision = Decision(Outcome.ROUTED, victim, None, DecisionReason.SLOT)
        for _ in range(6):
            self.router.report(MODEL, "default", decision, retry=True, outcome=AttemptOutcome.ERROR, now_ms=self.now_ms)
        assert self.weights is None or victim in {e.engine_id for e in self.router.ejections(self.now_ms)}
        after = self.ask_all()
        # In panic the others come back. Where the ejection has no effect, errors still count as not rejected: who was
        # kept from the victim by its throttle returns.
        left_out = self.left_out_as_suspects()
        if left_out >= ejected and (victim in left_out or not throttled):
            self.only_moved_from(victim, before, after)

    @precondition(lambda self: self.weights is not None and not self.suspicions() and not self.under_way)
    @rule(victim=engine)
    def when_an_ejection_ends_its_sessions_come_back(self, victim: str) -> None:
        assert self.router.installation is not None
        before = self.settled()
        self.an_engine_fails_until_it_is_ejected_and_only_its_sessions_move(victim)
        (ejection,) = self.router.ejections(self.now_ms)
        if ejection.until_ms < self.router.installation.commit.valid_until_ms:
            self.now_ms = ejection.until_ms
            assert engines(self.ask_all()) == engines(before)

    @rule(key=st.sampled_from(KEYS), established=standing)
    def a_request_begins(self, key: str, *, established: bool | None) -> None:
        decision = self.router.route(MODEL, key=key, established=established, now_ms=self.now_ms)
        self.router.report(MODEL, "default", decision, now_ms=self.now_ms)
        if decision.outcome is Outcome.ROUTED:
            self.router.begin(MODEL, "default", decision, now_ms=self.now_ms)
            self.under_way.append(decision)
            self.reported += self.weights is not None

    @precondition(lambda self: self.under_way)
    @rule(outcome=outcomes, ttft_s=st.sampled_from([None, 0.05, 1.0, float("nan"), -1.0]), data=st.data())
    def a_request_ends(self, outcome: AttemptOutcome, ttft_s: float | None, data: st.DataObject) -> None:
        decision = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        self.router.end(MODEL, "default", decision, outcome, ttft_s=ttft_s, now_ms=self.now_ms)
        if outcome in (AttemptOutcome.ERROR, AttemptOutcome.TIMEOUT):
            tried = (str(decision.engine_id),)
            if self.router.may_retry(MODEL, "default", tried):
                self.attempts.append(self.reported)
                again = self.router.route(MODEL, key="retried", exclude=tried, now_ms=self.now_ms)
                assert again.engine_id != decision.engine_id

    @rule(victim=engine, times=st.integers(1, 30))
    def an_engine_rejects(self, victim: str, times: int) -> None:
        decision = Decision(Outcome.ROUTED, victim, None, DecisionReason.SLOT)
        for _ in range(times):
            self.router.report(
                MODEL, "default", decision, retry=True, outcome=AttemptOutcome.REJECTED, now_ms=self.now_ms
            )

    @rule(after_ms=st.sampled_from([1, 500, 5_000, 40_000]))
    def time_passes(self, after_ms: int) -> None:
        self.now_ms += after_ms

    # what callers do

    @rule(tried=engine, hint=engine)
    def a_retry_never_meets_the_same_engine(self, tried: str, hint: str) -> None:
        for key in KEYS[:10]:
            decision = self.router.route(MODEL, key=key, exclude=(tried,), hint=hint, now_ms=self.now_ms)
            assert decision.engine_id != tried
            self.allowed(decision)

    @rule(key=anything, model=anything, hint=anything, tier=anything, exclude=anything, now_ms=anything)
    def anything_at_all_gets_a_decision(self, **arguments: object) -> None:
        decision = self.router.route(**arguments)  # type: ignore[arg-type] - the point of the rule
        assert isinstance(decision, Decision)
        assert decision.engine_id is None or decision.engine_id not in self.down

    @rule(key=st.one_of(st.none(), st.text(), st.binary()), after_ms=st.integers(-10 * TTL_MS, 10 * TTL_MS))
    def any_key_at_any_time_gets_an_allowed_engine_or_a_reason(self, key: bytes | str | None, after_ms: int) -> None:
        self.allowed(self.router.route(MODEL, key=key, now_ms=TICK_MS + after_ms))

    # what always holds

    @invariant()
    def no_excluded_down_or_weightless_engine_is_ever_given(self) -> None:
        for decision in self.ask_all().values():
            self.allowed(decision)

    @invariant()
    def suspects_left_out_are_within_the_share_or_one_is_left_out_up_to_half(self) -> None:
        weights = self.suspected_weights()
        assert sum(weights) <= EJECTED_MAX * PPM or (len(weights) == 1 and sum(weights) <= GUARDS.panic_above * PPM)

    @invariant()
    def retries_are_within_the_budget_in_every_window(self) -> None:
        for first, before in enumerate(self.attempts):
            for last in range(first, len(self.attempts)):
                granted, earned = last - first + 1, RETRY_RATIO * (self.attempts[last] - before)
                assert granted <= BURST + earned + 1

    def ask_all(self) -> dict[str, Decision]:
        return {key: self.router.route(MODEL, key=key, now_ms=self.now_ms) for key in KEYS}

    def settled(self) -> dict[str, Decision]:
        """Ask after judging anew: a throttle's share is used for a while before it is counted again."""
        self.router.set_health("nobody", up=True)
        return self.ask_all()

    def suspicions(self) -> object:
        return self.router.ejections(self.now_ms) or self.router.throttled(self.now_ms)

    def left_out_as_suspects(self) -> frozenset[str]:
        """What the router makes of its ejections for this route: read where it keeps it."""
        view = self.router._watch._avoidances.get((MODEL, "default"))
        return frozenset() if view is None else view.avoided - view.down

    def suspected_weights(self) -> list[int]:
        self.ask_all()
        targets = () if self.weights is None else self.weights.targets
        ppm = {t.engine_id: t.weight_ppm for t in targets}
        return [weight for e in self.left_out_as_suspects() if (weight := ppm.get(e, 0))]

    def only_moved_from(self, victim: str, before: dict[str, Decision], after: dict[str, Decision]) -> None:
        if self.under_way:
            return  # without the victim the others' shares are larger, so a crowd may be none any more
        # Whose engine was out already is raced for anew, by other weights.
        own = {key for key in KEYS if before[key].reason is not DecisionReason.FAILOVER}
        kept = {key for key in own if before[key].engine_id not in (victim, None)}
        assert {k: after[k].engine_id for k in kept} == {k: before[k].engine_id for k in kept}

    def allowed(self, decision: Decision) -> None:
        if decision.engine_id is None:
            assert decision.outcome is not Outcome.ROUTED
            assert decision.retry_after_s is not None
            assert decision.propensity is None
            assert decision.reason is not DecisionReason.INVALID_REQUEST
            return
        assert self.weights is not None
        assert decision.engine_id not in self.down
        assert decision.engine_id not in {e.engine_id for e in self.weights.excluded}
        assert decision.version == self.weights.version
        assert decision.propensity is not None
        assert 0 < decision.propensity <= 1
        by_fallback = decision.reason in (DecisionReason.FALLBACK_DOWN, DecisionReason.FALLBACK_STALE)
        ppm = {t.engine_id: t.weight_ppm for t in (self.weights.fallback if by_fallback else self.weights.targets)}
        if decision.reason in (DecisionReason.FAILOVER, DecisionReason.STALE_WEIGHTS) and not ppm.get(
            decision.engine_id
        ):
            ppm = {t.engine_id: t.weight_ppm for t in self.weights.failover}
        assert ppm[decision.engine_id] > 0


TestRouterMachine = pytest.mark.timeout(3_600)(RouterMachine.TestCase)  # where it is thorough; else it takes seconds
TestRouterMachine.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
