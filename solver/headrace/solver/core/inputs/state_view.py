"""Records of the compacted input topics -> the newest sound record of each key, which is what a tick sees.

    fleet, profiles, state.*  ──offer()──►  StateFold  ──view()──►  StateView (frozen; the fold goes on)

The newest record of a key wins; a tombstone takes the key away. A record that cannot be read or is not sound is an
outcome, `Rejected`, and the key keeps the record it had: a state that is not renewed ages by itself, and an operator's
slip does not take an engine away. Nothing here raises, whatever the bytes are.

The fold is mutable inside for speed; a view is a copy of its tables, so a tick never sees them move.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from headrace.schemas.check_fleet import check_engine, check_profile
from headrace.schemas.check_state import check_state
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected, RejectReason
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.overrides import Override, check_override, is_override_key
from headrace.schemas.raw import RawRecord
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import FLEET, PROFILES, STATE_DEMAND, STATE_ENGINE, STATE_NETWORK, Topic
from headrace.schemas.weights import InputOffsets
from headrace.solver.core.inputs.pooled_window import PooledWindow

INPUT_ROLES = (FLEET, PROFILES, STATE_ENGINE, STATE_DEMAND, STATE_NETWORK)
"""The topics a tick is computed from."""

T = TypeVar("T", EngineSpec, Override, LatencyProfile, EngineState, DemandState, NetworkState)
Input = EngineSpec | Override | LatencyProfile | EngineState | DemandState | NetworkState
Read = TypeVar("Read", bound=Input)


@dataclass(frozen=True, slots=True)
class StateView:
    """The newest sound record of each Kafka key, and how far each topic had been read. Overrides are of `fleet`.

    `windows` are of engines whose latencies were pooled before; their states hold none.
    """

    specs: Mapping[bytes, EngineSpec]
    profiles: Mapping[bytes, LatencyProfile]
    engines: Mapping[bytes, EngineState]
    demands: Mapping[bytes, DemandState]
    links: Mapping[bytes, NetworkState]
    inputs: tuple[InputOffsets, ...] = ()
    overrides: Mapping[bytes, Override] = field(default_factory=dict[bytes, Override])
    windows: Mapping[bytes, PooledWindow] = field(default_factory=dict[bytes, PooledWindow])


class StateFold:
    """Folds the input topics' records, in each partition's order, into tables by key."""

    def __init__(self, topics: Mapping[str, Topic], registry: SchemaSource | None = None) -> None:
        self._registry = registry
        self._kinds = {topics[role].name: cast("type[Input]", topics[role].record) for role in INPUT_ROLES}
        self._tables: dict[type, dict[bytes, Any]] = {kind: {} for kind in (*self._kinds.values(), Override)}

    def offer(self, record: RawRecord) -> Rejected | None:
        """Take the next record of an input topic; gives why it could not be used, or None where it was."""
        kind = self._kinds.get(record.topic)
        if kind is None:
            return Rejected(RejectReason.WRONG_RECORD, f"{record.topic} is no input of the solver")
        if record.key is None:
            return Rejected(RejectReason.KEY_MISMATCH, f"a {kind.__name__} has no key")
        if kind is EngineSpec and is_override_key(record.key):
            kind = Override
        if record.value is None:
            self._tables[kind].pop(record.key, None)
            return None
        decoded: Input | Rejected = decode(kind, record.value, record.headers, self._registry)
        if isinstance(decoded, Rejected):
            return decoded
        if decoded.key != record.key:
            return Rejected(RejectReason.KEY_MISMATCH, f"key is {record.key!r}; the record is for {decoded.key!r}")
        problems = _problems(decoded)
        if problems:
            return Rejected(RejectReason.OUT_OF_RANGE, "; ".join(problems))
        self._tables[kind][record.key] = without_window(decoded)
        return None

    def newest(self, record: RawRecord) -> Input | None:
        """Give what stands under a record's key, of its kind: the record itself where `offer` has just taken it."""
        kind = self._kinds.get(record.topic)
        if kind is None or record.key is None:
            return None
        if kind is EngineSpec and is_override_key(record.key):
            kind = Override
        found: Input | None = self._tables[kind].get(record.key)
        return found

    def view(self, inputs: tuple[InputOffsets, ...] = ()) -> StateView:
        """Give the tables as they stand; `inputs` says how far they had been read."""
        return StateView(
            specs=self._table(EngineSpec),
            profiles=self._table(LatencyProfile),
            engines=self._table(EngineState),
            demands=self._table(DemandState),
            links=self._table(NetworkState),
            inputs=inputs,
            overrides=self._table(Override),
        )

    def _table(self, kind: type[T]) -> dict[bytes, T]:
        return cast("dict[bytes, T]", dict(self._tables[kind]))


def _problems(record: Input) -> tuple[str, ...]:
    match record:
        case EngineSpec():
            return check_engine(record)
        case LatencyProfile():
            return check_profile(record)
        case Override():
            return check_override(record)
        case _:
            return check_state(record)


def without_window(record: Read) -> Read:
    """Leave the window behind: it belongs to the fold that wrote it, and would only cost memory here.

    That of demand, which is short, stays: replay reads what arrived when.
    """
    if isinstance(record, (EngineState, NetworkState)):
        return replace(record, panes=b"")
    return record
