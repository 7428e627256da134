"""What the console holds, and what it answers from it: records go in on one thread, answers come out on others.

    offer(record) ─► past (versions), engines known ─► overview(version), engine_table(version), ...

Everything is under one lock. Each answer is one picture of the core.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping

from headrace.infra.console.core.decision import DecisionLog
from headrace.infra.console.core.engine_card import EngineCard, engine_card
from headrace.infra.console.core.engine_table import EngineTable, engine_table
from headrace.infra.console.core.flows import FlowMap, flow_map
from headrace.infra.console.core.overview import Overview, overview
from headrace.infra.console.core.standings import EngineStanding, standings
from headrace.infra.console.core.status import Link, Status, liveness
from headrace.infra.console.core.timeline import Bounds
from headrace.infra.console.core.totals import TotalsSeries
from headrace.infra.console.core.weight_history import WeightHistory, weight_history
from headrace.infra.console.core.weight_rows import WeightRows, weight_rows
from headrace.infra.console.engines_known import EnginesKnown
from headrace.infra.console.past import NotHeldError, Past
from headrace.schemas.codec import SchemaSource
from headrace.schemas.ids import RouteKey
from headrace.schemas.raw import RawRecord
from headrace.schemas.topics import DECISIONS, FLEET, PROFILES, SNAPSHOTS, STATE_ENGINE, Topic
from headrace.schemas.weights import Snapshot

MAX_STANDINGS = 16
"""Versions whose standings are kept, lest each part of the page computes them anew."""


class Desk:
    """What is held of the topics.

    Args:
        topics: by role.
        bounds: of the versions held.
        registry: of schemas, where one is configured.
    """

    def __init__(self, topics: Mapping[str, Topic], bounds: Bounds, registry: SchemaSource | None = None) -> None:
        self._bounds = bounds
        self._lock = threading.RLock()
        self._past = Past(bounds)
        self._engines = EnginesKnown(topics, registry)
        self._standings: OrderedDict[tuple[int, int], tuple[EngineStanding, ...]] = OrderedDict()
        self._link = Link()
        self._roles = {topics[role].name: role for role in (SNAPSHOTS, DECISIONS, FLEET, PROFILES, STATE_ENGINE)}

    def offer(self, record: RawRecord) -> bool:
        """Take the next record of any of the topics; gives whether a page has something new to show."""
        with self._lock:
            match self._roles[record.topic]:
                case "snapshots":
                    return self._past.take_snapshot(record)
                case "decisions":
                    return self._past.take_decision(record)
                case "state.engine":
                    return self._engines.take_state(record)
                case _:
                    return self._engines.take_fleet(record)

    def begin_anew(self) -> None:
        """Forget the versions: the topics were made anew, and their versions count from one again."""
        with self._lock:
            self._past = Past(self._bounds)
            self._standings.clear()

    def link(self, link: Link) -> None:
        """Take how the broker stands."""
        with self._lock:
            self._link = link

    def status(self, now_ms: int) -> Status:
        """Say how the console stands."""
        with self._lock:
            newest, oldest = self._past.timeline.newest, self._past.timeline.oldest
            word, sentence = liveness(self._link, newest, now_ms)
            return Status(
                now_ms=now_ms,
                liveness=word.value,
                sentence=sentence,
                version=None if newest is None else newest.version,
                tick_ms=None if newest is None else newest.tick_ms,
                period_ms=None if newest is None else newest.period_ms,
                valid_until_ms=None if newest is None else newest.valid_until_ms,
                oldest_version=None if oldest is None else oldest.version,
                oldest_tick_ms=None if oldest is None else oldest.tick_ms,
                versions_held=self._past.versions,
                versions_bound=self._bounds.versions,
                parts_held=self._past.timeline.parts,
                parts_bound=self._bounds.parts,
            )

    def overview(self, version: int | None) -> Overview:
        """Give a version from above. This and all below raise NotHeldError where a version or a name is not held."""
        with self._lock:
            snapshot = self._past.snapshot(version)
            found = self._past.totals(snapshot.commit.version)
            return overview(snapshot, found, self._standings_of(snapshot), self._engines.overrides())

    def engine_table(self, version: int | None) -> EngineTable:
        """Give every engine of a version, as columns."""
        with self._lock:
            snapshot = self._past.snapshot(version)
            live, commit = self._past.is_newest(snapshot), snapshot.commit
            fleet = self._engines.fleet_with_states() if live else self._engines.fleet()
            return engine_table(commit.version, commit.tick_ms, self._standings_of(snapshot), fleet, live=live)

    def engine_card(self, engine_id: str, version: int | None) -> EngineCard:
        """Give one engine of a version."""
        with self._lock:
            snapshot = self._past.snapshot(version)
            found = next((e for e in self._standings_of(snapshot) if e.engine_id == engine_id), None)
            if found is None:
                raise NotHeldError("console", (f"engine is {engine_id[:80]!r}; neither fleet nor weights know it",))
            live, commit = self._past.is_newest(snapshot), snapshot.commit
            fleet = self._engines.fleet_with_states() if live else self._engines.fleet()
            return engine_card(commit.version, commit.tick_ms, found, fleet, live=live)

    def flow_map(self, version: int | None, group: str, top: int, cluster: str | None) -> FlowMap:
        """Give who sends whom how much."""
        with self._lock:
            return flow_map(self._past.snapshot(version), self._engines.fleet().specs, group, top, cluster)

    def weight_rows(self, version: int | None, cluster: str | None, engine_id: str | None, limit: int) -> WeightRows:
        """Give the weights as rows."""
        with self._lock:
            return weight_rows(self._past.snapshot(version), cluster, engine_id, limit)

    def weight_history(self, route: RouteKey) -> WeightHistory:
        """Give one route's weights over the versions held."""
        with self._lock:
            records = self._past.timeline.history(route)
            if not records:
                raise NotHeldError("console", (f"route is {str(route)[:200]!r}; no version held has it",))
            return weight_history(route, records, self._past.timeline.commits())

    def totals_series(self) -> TotalsSeries:
        """Give the numbers of the versions held."""
        with self._lock:
            return self._past.totals_series()

    def decision_log(self, version: int | None, limit: int, *, quiet: bool) -> DecisionLog:
        """Give the decision log up to a version."""
        with self._lock:
            return self._past.decision_log(self._past.snapshot(version).commit.version, limit, quiet=quiet)

    def _standings_of(self, snapshot: Snapshot) -> tuple[EngineStanding, ...]:
        key = snapshot.commit.version, self._engines.changes
        found = self._standings.get(key)
        if found is None:
            found = self._standings[key] = standings(snapshot, self._engines.fleet().specs)
            while len(self._standings) > MAX_STANDINGS:
                self._standings.popitem(last=False)
        return found
