"""What is known of the engines beside the weights: the fleet with its profiles and overrides, and each one's own word.

An engine's state is kept as bytes, and read when somebody asks: most are superseded before anybody does.
Mutable, and one thread at a time: the desk has the lock.
"""

from collections.abc import Mapping

from headrace.infra.console.core.engine_table import Fleet
from headrace.schemas.codec import SchemaSource, decode
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.overrides import Override
from headrace.schemas.raw import RawRecord
from headrace.schemas.state import EngineState
from headrace.schemas.topics import Topic
from headrace.solver.core.inputs.state_view import StateFold


class EnginesKnown:
    """Folds the fleet, the profiles and the engines' states."""

    def __init__(self, topics: Mapping[str, Topic], registry: SchemaSource | None) -> None:
        self._registry = registry
        self._fold = StateFold(topics, registry)
        self._fleet: Fleet | None = None
        self._unread: dict[bytes, RawRecord] = {}
        self._states: dict[str, EngineState] = {}
        self.changes = 0
        """How often fleet, profiles or overrides changed."""

    def take_fleet(self, record: RawRecord) -> bool:
        """Take the next record of the fleet or of the profiles."""
        self._fold.offer(record)
        self._fleet = None
        self.changes += 1
        return True

    def take_state(self, record: RawRecord) -> bool:
        """Take the next word of an engine; by itself it is nothing to wake a page for."""
        if record.key is None:
            return False
        if record.value is None:
            self._unread.pop(record.key, None)
            self._states.pop(record.key.decode(errors="replace"), None)
        else:
            self._unread[record.key] = record
        return False

    def fleet(self) -> Fleet:
        """Give the fleet; the engines' own words in it may be older ones."""
        if self._fleet is None:
            view = self._fold.view()
            specs = {spec.engine_id: spec for spec in view.specs.values()}
            self._fleet = Fleet(specs, {p.profile_id: p for p in view.profiles.values()}, self._states)
        return self._fleet

    def fleet_with_states(self) -> Fleet:
        """Give the fleet with the engines' newest words."""
        for raw in self._unread.values():
            found = decode(EngineState, raw.value, raw.headers, self._registry)
            if not isinstance(found, Rejected):
                self._states[found.engine_id] = found
        self._unread.clear()
        return self.fleet()

    def overrides(self) -> tuple[Override, ...]:
        """Give what operators have said, whether it still counts or not."""
        return tuple(self._fold.view().overrides.values())
