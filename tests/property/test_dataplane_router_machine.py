"""A router through any history of snapshots and engine deaths, held against a model that is a few dictionaries."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, TICK_MS, TTL_MS, route_weights, snapshot
from headrace.dataplane import Decision, DecisionReason, Outcome, Router
from headrace.dataplane.installation import Installation
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.slot_table import quotas
from headrace.schemas.assembly import Assembled, SnapshotAssembler
from headrace.schemas.codec import encode
from headrace.schemas.raw import RawRecord
from headrace.schemas.weights import PPM, RouteWeights, SnapshotCommit

ENGINES = [f"engine-{letter}" for letter in "abcdef"]
KEYS = [f"session-{i}" for i in range(60)]
SMALL = DataPlaneSettings(table_size=1_021, large_table_size=2_039, large_above=4, rehash_max=2)

engine = st.sampled_from(ENGINES)
parts = st.lists(st.integers(0, 5), min_size=len(ENGINES), max_size=len(ENGINES))
anything = st.one_of(
    st.none(), st.text(), st.binary(), st.integers(), st.floats(), st.lists(st.text()), st.just(object()), st.booleans()
)


def raw(record: RouteWeights | SnapshotCommit) -> RawRecord:
    return RawRecord("weights", 0, 0, 0, record.key, encode(record))


class RouterMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.router = Router(SMALL, CLUSTER)
        self.assembler = SnapshotAssembler()
        self.down: set[str] = set()
        self.weights: RouteWeights | None = None
        self.epoch, self.version = 1, 0

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
        )

    def publish(self, weights: RouteWeights) -> object:
        commit = snapshot(weights).commit
        outcomes = [self.assembler.offer(raw(weights)), self.assembler.offer(raw(commit))]
        return outcomes[-1]

    @rule(
        weights=parts,
        excluded=st.sets(engine, max_size=3),
        shed=st.sampled_from([0.0, 0.0, 0.3]),
        takeover=st.integers(0, 1),
    )
    def a_snapshot_is_published(self, weights: list[int], excluded: set[str], shed: float, takeover: int) -> None:
        self.epoch, self.version = self.epoch + takeover, self.version + 1
        self.weights = self.make(weights, excluded, self.epoch, self.version, shed)
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

    @rule(victim=engine)
    def an_engine_dies_and_only_its_sessions_move(self, victim: str) -> None:
        before = self.ask_all()
        self.down.add(victim)
        self.router.set_health(victim, up=False)
        after = self.ask_all()
        assert all(after[key].engine_id == before[key].engine_id for key in KEYS if before[key].engine_id != victim)

    @rule(victim=engine)
    def an_engine_is_up_again(self, victim: str) -> None:
        self.down.discard(victim)
        self.router.set_health(victim, up=True)

    @rule(victim=engine)
    def ejecting_and_restoring_an_engine_changes_nothing(self, victim: str) -> None:
        if victim in self.down:
            return
        before = self.ask_all()
        self.router.set_health(victim, up=False)
        self.router.set_health(victim, up=True)
        assert self.ask_all() == before

    @rule(tried=engine, hint=engine)
    def a_retry_never_meets_the_same_engine(self, tried: str, hint: str) -> None:
        for key in KEYS[:10]:
            assert self.router.route(MODEL, key=key, exclude=(tried,), hint=hint, now_ms=NOW_MS).engine_id != tried

    @rule(key=anything, model=anything, hint=anything, tier=anything, exclude=anything, now_ms=anything)
    def anything_at_all_gets_a_decision(self, **arguments: object) -> None:
        decision = self.router.route(**arguments)  # type: ignore[arg-type] - the point of the rule
        assert isinstance(decision, Decision)
        assert decision.engine_id is None or decision.engine_id not in self.down

    @rule(key=st.one_of(st.none(), st.text(), st.binary()), after_ms=st.integers(-10 * TTL_MS, 10 * TTL_MS))
    def any_key_at_any_time_gets_an_allowed_engine_or_a_reason(self, key: bytes | str | None, after_ms: int) -> None:
        self.allowed(self.router.route(MODEL, key=key, now_ms=TICK_MS + after_ms))

    @invariant()
    def no_excluded_down_or_weightless_engine_is_ever_given(self) -> None:
        for decision in self.ask_all().values():
            self.allowed(decision)

    def ask_all(self) -> dict[str, Decision]:
        return {key: self.router.route(MODEL, key=key, now_ms=NOW_MS) for key in KEYS}

    def allowed(self, decision: Decision) -> None:
        if decision.engine_id is None:
            assert decision.outcome is not Outcome.ROUTED
            assert decision.retry_after_s is not None
            assert decision.reason is not DecisionReason.INVALID_REQUEST
            return
        assert self.weights is not None
        assert decision.engine_id not in self.down
        assert decision.engine_id not in {e.engine_id for e in self.weights.excluded}
        assert decision.version == self.weights.version
        by_fallback = decision.reason in (DecisionReason.FALLBACK_DOWN, DecisionReason.FALLBACK_STALE)
        of = self.weights.fallback if by_fallback else self.weights.targets
        assert {t.engine_id: t.weight_ppm for t in of}[decision.engine_id] > 0


TestRouterMachine = RouterMachine.TestCase
TestRouterMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
