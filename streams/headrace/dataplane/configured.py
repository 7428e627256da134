"""Before any snapshot has arrived: an engine of the fallback that the configuration gives the model, or a refusal."""

from collections.abc import Collection

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.detour import all_among, excluded
from headrace.dataplane.rendezvous import Candidates
from headrace.dataplane.settings import DataPlaneSettings, FallbackEngine


class Configured:
    """The fallbacks of one data plane's settings, and what it says where it has no engine."""

    __slots__ = ("_by_model", "refused")

    def __init__(self, settings: DataPlaneSettings) -> None:
        self._by_model = {model: _candidates(engines) for model, engines in settings.fallback.items()}
        self.refused = {reason: _refused(reason, settings.retry_after_s) for reason in DecisionReason}

    def decide(self, model: str, point: int, exclude: Collection[str], down: set[str]) -> Decision:
        """Decide for the session at `point`."""
        configured = self._by_model.get(model)
        if configured is None:
            return self.refused[DecisionReason.NO_SNAPSHOT]
        decision = configured.pick(point, down.union(excluded(exclude)), DecisionReason.FALLBACK_CONFIGURED)
        if decision is not None:
            return decision
        all_down = all_among(down, configured)
        return self.refused[DecisionReason.ALL_DOWN if all_down else DecisionReason.NO_OTHER_ENGINE]


def _candidates(engines: tuple[FallbackEngine, ...]) -> Candidates:
    reason = DecisionReason.FALLBACK_CONFIGURED
    decisions = [Decision(Outcome.ROUTED, engine.engine_id, engine.address, reason) for engine in engines]
    return Candidates(decisions, [engine.weight for engine in engines])


def _refused(reason: DecisionReason, retry_after_s: float) -> Decision:
    return Decision(Outcome.REFUSED, None, None, reason, retry_after_s=retry_after_s)
