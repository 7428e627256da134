"""The first difference between a recorded snapshot and the one computed again, told as input, term and weight.

    input    which records are not those that the solver read; else what of the demand or of the engines differs
    term     the first quantity of the route that differs: network, TTFT, TBOT, utilisation, price
    weight   the engine of the route whose weight is furthest off

Failure mode: where the records are proved to be the same, the difference is the code's or the machine's; it says so,
with the hash of the rules then and now, which tells the one from the other as far as history can.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.replay.core.recorded import RecordedTick
from headrace.schemas.codec import encode_body
from headrace.schemas.weights import RouteWeights, Target
from headrace.solver.core.tick import Tick

_TERMS = (
    ("network_s", "network round trip", 1000.0, "ms"),
    ("ttft_s", "time to first token", 1000.0, "ms"),
    ("tbot_s", "time between tokens", 1000.0, "ms"),
    ("utilisation", "utilisation", 100.0, "%"),
    ("engine_price_ms", "engine price", 1.0, "ms"),
)
PROVED = "the inputs are proved to be what the solver read, so the code or the machine is another"


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs at one tick, each part a sentence; empty where that part is the same.

    Attributes:
        version: of the tick.
        tick_ms: its time.
        input: which input is not what the solver read.
        term: the first quantity that differs.
        weight: the weight that is furthest off.
        same_bytes: the snapshot came out the same although an input differs.
        policy_hash: of the rules that it was recorded under.
        policy_hash_now: of the same settings under this build's rules.
        proved: the inputs are proved to be those that the solver read.
    """

    version: int
    tick_ms: int
    input: str
    term: str
    weight: str
    same_bytes: bool = False
    policy_hash: str = ""
    policy_hash_now: str = ""
    proved: bool = False

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return "; ".join(part for part in (self.input, self.term, self.weight) if part)

    @property
    def rules(self) -> str:
        """Say whether this build's rules are those that the tick was recorded under."""
        if self.policy_hash == self.policy_hash_now:
            return f"policy_hash was {self.policy_hash} and still is: the same rules, computed otherwise"
        return f"policy_hash was {self.policy_hash}, is {self.policy_hash_now}: this build has other rules"


def difference(tick: RecordedTick, again: Tick, unproved: tuple[str, ...]) -> Difference:
    """Explain how a tick differs. `unproved` names the records that are not what the solver read."""
    commit, ours = tick.snapshot.commit, again.snapshot.commit
    recorded = {route.key: route for route in tick.snapshot.routes}
    computed = {route.key: route for route in again.snapshot.routes}
    told: list[str] = list(unproved)
    proved = not unproved and tick.record is not None and tick.record.input_digests is not None
    term, weight, off = "", "", -1
    for key in sorted(recorded.keys() | computed.keys()):
        one, other = recorded.get(key), computed.get(key)
        if one is None or other is None:
            told.append(f"route {key.decode()} is {'not recorded' if one is None else 'recorded only'}")
            continue
        if encode_body(one) == encode_body(other):
            continue
        told += [] if told else list(_inputs(one, other))
        term = term or next(_terms(one, other), "")
        furthest = _furthest(one, other)
        if furthest[0] > off:
            off, weight = furthest
    told = told or list(_commits(tick, again))
    if proved:
        told.insert(0, PROVED)
    same = not term and not weight and encode_body(commit) == encode_body(ours)
    told_input = "; ".join(told[:3])
    hashes = commit.policy_hash, ours.policy_hash
    return Difference(commit.version, commit.tick_ms, told_input, term, weight, same, *hashes, proved)


def _inputs(one: RouteWeights, other: RouteWeights) -> Iterator[str]:
    if one.demand_rps != other.demand_rps:
        yield f"demand of {one.route} was {one.demand_rps:.6g} RPS, is {other.demand_rps:.6g}"
    before, now = ({x.engine_id: x for x in route.excluded} for route in (one, other))
    for engine in sorted(before.keys() ^ now.keys()):
        x = before.get(engine) or now[engine]
        yield f"{engine} was {'excluded' if engine in before else 'not excluded'} from {one.route}: {x.sentence}"


def _terms(one: RouteWeights, other: RouteWeights) -> Iterator[str]:
    now = {target.engine_id: target for target in other.targets}
    for target in one.targets:
        again = now.get(target.engine_id)
        for field, name, scale, unit in _TERMS if again is not None else ():
            was, is_now = getattr(target, field), getattr(again, field)
            if was != is_now:
                yield f"{name} of {target.engine_id} was {_said(was, scale, unit)}, is {_said(is_now, scale, unit)}"
    if one.marginal_ms != other.marginal_ms:
        was, now_is = _said(one.marginal_ms, 1.0, "ms"), _said(other.marginal_ms, 1.0, "ms")
        yield f"marginal price of {one.route} was {was}, is {now_is}"
    if one.sentence != other.sentence:
        yield f"{one.route} was told as {one.sentence!r}, is {other.sentence!r}"


def _furthest(one: RouteWeights, other: RouteWeights) -> tuple[int, str]:
    was, now = _weights(one.targets), _weights(other.targets)
    engines = sorted(was.keys() | now.keys())
    off = {engine: abs(was.get(engine, 0) - now.get(engine, 0)) for engine in engines}
    engine = max(engines, key=lambda each: (off[each], each), default="")
    if not engine or off[engine] == 0:
        return 0, f"weights of {one.route} are the same"
    return off[engine], f"{one.route}: {engine} had {was.get(engine, 0)} ppm, gets {now.get(engine, 0)}"


def _weights(targets: tuple[Target, ...]) -> dict[str, int]:
    return {target.engine_id: target.weight_ppm for target in targets}


def _commits(tick: RecordedTick, again: Tick) -> Iterator[str]:
    """Say what differs where no route does: the rules, the status, what is remembered, or the record."""
    one, other = tick.snapshot.commit, again.snapshot.commit
    for field in ("policy_hash", "status", "remembered", "protections", "sentence", "inputs", "changed", "digest"):
        was, now = getattr(one, field), getattr(other, field)
        if was != now:
            yield f"{field} was {was!r:.120}, is {now!r:.120}"
    if tick.record is not None:
        for field in ("rung", "objective", "gap", "shed_rps", "moved_rps", "columns", "route_duals", "pool_duals"):
            was, now = getattr(tick.record, field), getattr(again.record, field)
            if was != now:
                yield f"decision record: {field} was {was!r:.80}, is {now!r:.80}"


def _said(value: float | None, scale: float, unit: str) -> str:
    return "not known" if value is None else f"{value * scale:.6g} {unit}"
