"""Records of our own topics -> what a picture holds of them. A fold in place, over each partition's own order.

Whatever a record is, nothing here raises: what cannot be used is kept as a RefusedRecord, at most MOST_REFUSED of a
topic. `earlier` records are of a while ago: they tell who was heard then, and count for nothing else.
"""

from collections import Counter
from collections.abc import Mapping

from headrace.infra.doctor.core.picture import Heard, Letter, Place, Planned, RefusedRecord, Written
from headrace.schemas.check_signals import check_signal
from headrace.schemas.check_snapshot import check_route
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import DeadLetter, Rejected, RejectReason
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.ids import COMMIT_KEY
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.topics import (
    DEAD_LETTERS,
    DECISIONS,
    SIGNALS_DEMAND,
    SIGNALS_ENGINE,
    SIGNALS_NETWORK,
    SNAPSHOTS,
    WEIGHTS,
    Topic,
)
from headrace.schemas.weights import RouteWeights, SnapshotCommit
from headrace.solver.core.inputs.state_view import INPUT_ROLES, StateFold, StateView

MOST_REFUSED = 200
_SIGNALS = {SIGNALS_ENGINE: EngineSignals, SIGNALS_DEMAND: Demand, SIGNALS_NETWORK: NetworkProbe}


class Reading:
    """Takes records; its fields are what the picture takes from it."""

    def __init__(self, table: Mapping[str, Topic], registry: SchemaSource | None = None) -> None:
        self._registry = registry
        self._roles = {topic.name: role for role, topic in table.items()}
        self._fold = StateFold(table, registry)
        self._refused_of: Counter[str] = Counter()
        self._applied: dict[tuple[str, bytes], int] = {}
        self.signals: list[Heard] = []
        self.written: list[Written] = []
        self.commit: SnapshotCommit | None = None
        self.commit_before: SnapshotCommit | None = None
        self.planned: list[Planned] = []
        self.routes: dict[bytes, RouteWeights] = {}
        self.decisions: list[SolveRecord] = []
        self.settings_text: str | None = None
        self.letters: list[Letter] = []
        self.refused: list[RefusedRecord] = []
        self.went_back: dict[tuple[str, bytes], None] = {}
        self.newest_ms: dict[str, int] = {}
        self.counts: Counter[Place] = Counter()

    @property
    def view(self) -> StateView:
        """The newest sound record of each input's key."""
        return self._fold.view()

    def offer(self, record: RawRecord, *, earlier: bool = False) -> None:
        """Take the next record of one of our topics."""
        role = self._roles.get(record.topic)
        if role is None:
            return
        self.counts[record.topic, record.partition] += 1
        self.newest_ms[record.topic] = max(record.timestamp_ms, self.newest_ms.get(record.topic, record.timestamp_ms))
        if role in _SIGNALS:
            self._signal(record, _SIGNALS[role], earlier=earlier)
        elif role in INPUT_ROLES:
            self._input(record)
        elif role == WEIGHTS:
            self._weights(record)
        elif role == SNAPSHOTS:
            self._route(record)
        elif role == DECISIONS:
            self._decision(record)
        elif role == DEAD_LETTERS:
            self._letter(record)

    def _signal(self, record: RawRecord, kind: type[EngineSignals | Demand | NetworkProbe], *, earlier: bool) -> None:
        signal = decode(kind, record.value, record.headers, self._registry)
        if isinstance(signal, Rejected):
            return self._refuse(record, signal)
        problem = check_signal(signal, record.timestamp_ms)
        if problem is not None and not earlier:
            self._refuse(record, problem)
        if problem is None or problem.reason is RejectReason.TIME_IN_FUTURE:
            # One of a clock that is ahead is refused, and the very one that tells of it.
            self.signals.append(Heard(record.timestamp_ms, signal))
        return None

    def _input(self, record: RawRecord) -> None:
        refused = self._fold.offer(record)
        if refused is not None:
            self._refuse(record, refused)
            return
        state = self._fold.newest(record)
        if record.key is None or not isinstance(state, EngineState | DemandState | NetworkState):
            return
        at = (record.topic, record.key)
        if state.applied_offset < self._applied.get(at, -1):
            self.went_back[at] = None
        self._applied[at] = state.applied_offset

    def _weights(self, record: RawRecord) -> None:
        found = self._weights_record(record)
        if found is None:
            return
        is_commit = isinstance(found, SnapshotCommit)
        self.written.append(Written(record.offset, record.timestamp_ms, found.epoch, found.version, is_commit))
        newest = self.commit
        if isinstance(found, RouteWeights):
            self.planned.append(Planned(found.version, found.route, found.demand_rps))
        elif self.commit_before is None:
            self.commit_before = found
        if isinstance(found, SnapshotCommit) and (
            newest is None or (found.epoch, found.version) >= (newest.epoch, newest.version)
        ):
            self.commit = found

    def _weights_record(self, record: RawRecord) -> RouteWeights | SnapshotCommit | None:
        if record.value is None:
            return None
        kind: type[RouteWeights | SnapshotCommit] = SnapshotCommit if record.key == COMMIT_KEY else RouteWeights
        found = decode(kind, record.value, record.headers, self._registry)
        if isinstance(found, Rejected):
            self._refuse(record, found)
            return None
        problems = check_route(found) if isinstance(found, RouteWeights) else ()
        if problems:
            self._refuse(record, Rejected(RejectReason.INCONSISTENT, "; ".join(problems)))
        return found

    def _route(self, record: RawRecord) -> None:
        if record.key is None or record.key == COMMIT_KEY:
            return
        if record.value is None:
            self.routes.pop(record.key, None)
            return
        found = self._weights_record(record)
        if isinstance(found, RouteWeights):
            self.routes[record.key] = found

    def _decision(self, record: RawRecord) -> None:
        found = decode(SolveRecord, record.value, record.headers, self._registry)
        if isinstance(found, Rejected):
            self._refuse(record, found)
            return
        self.decisions.append(found)
        self.settings_text = found.settings or self.settings_text

    def _letter(self, record: RawRecord) -> None:
        found = decode(DeadLetter, record.value, record.headers, self._registry)
        if isinstance(found, Rejected):
            self._refuse(record, found)
            return
        self.letters.append(Letter(record.timestamp_ms, found))

    def _refuse(self, record: RawRecord, rejected: Rejected) -> None:
        self._refused_of[record.topic] += 1
        if self._refused_of[record.topic] > MOST_REFUSED:
            return
        self.refused.append(
            RefusedRecord(
                record.topic,
                record.partition,
                record.offset,
                record.timestamp_ms,
                record.key,
                rejected.reason,
                rejected.detail,
            )
        )
