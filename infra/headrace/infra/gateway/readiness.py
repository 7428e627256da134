"""Whether the gateway can route: with a snapshot, or with a fallback from the configuration; until it is stopped."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.dataplane.router import Router

if TYPE_CHECKING:
    from headrace.dataplane.installation import Installation


class Readiness:
    """What the gateway routes by, and how old it is. Set `stopping` and it is ready no more."""

    def __init__(self, router: Router, now_ms: Callable[[], int]) -> None:
        self._router = router
        self._now_ms = now_ms
        self._models: tuple[Installation | None, frozenset[str]] = (None, frozenset(router.settings.fallback))
        self._engines: tuple[Installation | None, frozenset[str]] = (None, self._fallback_engines())
        self.stopping = False

    def models(self) -> frozenset[str]:
        """Give the models that may be asked for: those with a route, before any snapshot those with a fallback."""
        installed = self._router.installation
        if installed is not self._models[0] and installed is not None:
            self._models = (installed, frozenset(model for model, _ in installed.tables))
        return self._models[1]

    def engines(self) -> frozenset[str]:
        """Give the engines that any route names, a configured fallback's included."""
        installed = self._router.installation
        if installed is not self._engines[0] and installed is not None:
            weights = [table.weights for table in installed.tables.values()]
            parts = [part for each in weights for part in (each.targets, each.fallback, each.failover)]
            named = {target.engine_id for part in parts for target in part}
            self._engines = (installed, frozenset(named) | self._fallback_engines())
        return self._engines[1]

    def since_s(self) -> int:
        """Give when the weights were made, in seconds since the epoch; 0 where there are none."""
        installed = self._router.installation
        return 0 if installed is None else installed.commit.tick_ms // 1000

    def version(self) -> tuple[int, int]:
        """Give epoch and version of the weights; zeros where there are none."""
        installed = self._router.installation
        return (0, 0) if installed is None else (installed.commit.epoch, installed.commit.version)

    def age_s(self) -> float:
        """Give the weights' age; -1 where there are none."""
        installed = self._router.installation
        return -1.0 if installed is None else (self._now_ms() - installed.commit.tick_ms) / 1000

    def ready(self) -> bool:
        """Say whether requests can be routed."""
        return not self.stopping and (self._router.installation is not None or bool(self._router.settings.fallback))

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Give whether it is ready, and what to show."""
        epoch, version = self.version()
        installed = self._router.installation is not None
        document: dict[str, Any] = {
            "ready": self.ready(),
            "stopping": self.stopping,
            "weights": self._router.staleness(self._now_ms()).value,
            "version": f"{epoch}.{version}" if installed else None,
            "age_s": round(self.age_s(), 3) if installed else None,
            "fallback": bool(self._router.settings.fallback),
        }
        return document["ready"], document

    def _fallback_engines(self) -> frozenset[str]:
        return frozenset(e.engine_id for engines in self._router.settings.fallback.values() for e in engines)
