"""The demo's data planes: per cluster a router, the feed that installs snapshots, the reporter of what was asked.

That is demand, and, where `dataplane.routed_share` is above 0, a sample of single requests.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headrace.dataplane.decision import Outcome
from headrace.dataplane.feed import SnapshotFeed
from headrace.dataplane.reporter import DemandReporter, RoutedReports
from headrace.dataplane.router import Router
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.topics import ROUTED, SIGNALS_DEMAND, WEIGHTS, Topic
from headrace.schemas.weights import Snapshot

MAX_UNSEEN = 10_000


@dataclass(frozen=True, slots=True)
class Installed:
    """A snapshot that a cluster's router installed, and the wall clock of that moment."""

    cluster: str
    snapshot: Snapshot
    at_ms: int


class Planes:
    """The data planes of the clusters named. Feeds and reporters are threads; what they say waits in bounded deques."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Mapping[str, Topic],
        settings: DataPlaneSettings,
        clusters: Sequence[str],
    ) -> None:
        self._installed: deque[Installed] = deque(maxlen=MAX_UNSEEN)
        self._problems: deque[str] = deque(maxlen=MAX_UNSEEN)
        self.routers = {name: Router(replace(settings, source=f"{name}/{settings.source}"), name) for name in clusters}
        self._feeds = [
            SnapshotFeed(kafka, topics[WEIGHTS].name, router, partial(self._on_install, name), self._problems.append)
            for name, router in self.routers.items()
        ]
        self._reporters = [
            DemandReporter(
                kafka,
                topics[SIGNALS_DEMAND].name,
                router.demand,
                self._problems.append,
                routed=RoutedReports(topics[ROUTED].name, router.routed),
            )
            for router in self.routers.values()
        ]

    def start(self) -> None:
        """Begin to follow the weights and to report demand."""
        for feed in self._feeds:
            feed.start()
        for reporter in self._reporters:
            reporter.start()

    def stop(self) -> None:
        """End the threads."""
        for feed in self._feeds:
            feed.stop(timeout_s=2.0)
        for reporter in self._reporters:
            reporter.stop(timeout_s=2.0)

    def all_route(self, model: str, now_ms: int) -> bool:
        """Say whether every router has an engine for a request; asks without counting it."""
        decisions = (router.route(model, key=b"demo", now_ms=now_ms) for router in self.routers.values())
        return all(decision.outcome is Outcome.ROUTED for decision in decisions)

    def take_installed(self) -> list[Installed]:
        """Give what was installed since the last call, in order."""
        return [self._installed.popleft() for _ in range(len(self._installed))]

    def take_problems(self) -> list[str]:
        """Give what went wrong since the last call."""
        return [self._problems.popleft() for _ in range(len(self._problems))]

    def _on_install(self, cluster: str, snapshot: Snapshot, at_ms: int) -> None:
        self._installed.append(Installed(cluster, snapshot, at_ms))
