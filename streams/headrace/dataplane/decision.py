"""What `route()` says: an engine, or a refusal, and always why."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """ROUTED: send it to the engine. SHED: load is shed, this session with it. REFUSED: there is no engine."""

    ROUTED = "ROUTED"
    SHED = "SHED"
    REFUSED = "REFUSED"


class DecisionReason(StrEnum):
    """By which step a request got its engine, or why it got none."""

    # ROUTED
    SLOT = "SLOT"
    """The session's slot in the route's table: the usual case."""
    HINT = "HINT"
    """The engine that the caller asked for; it has a weight and is up."""
    FAILOVER = "FAILOVER"
    """The slot's engine is down, ejected or excluded by the caller; it went where the snapshot says there is room."""
    REHASH = "REHASH"
    """The slot's engine is down or excluded by the caller; another slot of the session's was taken."""
    SCAN = "SCAN"
    """Those too; all engines of the route were weighed for this session."""
    RELEASED = "RELEASED"
    """The slot's engine has more than its share of the requests under way; the session moved on, and stays there."""
    SPILLED = "SPILLED"
    """More arrives than the weights know of, and the slot's engine has no room for it; it went where there is room."""
    PANIC = "PANIC"
    """Every engine that is up was suspected of something; suspicion was ignored."""
    FALLBACK_DOWN = "FALLBACK_DOWN"
    """Every engine with a weight is down; an engine of the snapshot's static fallback was taken."""
    FALLBACK_STALE = "FALLBACK_STALE"
    """The snapshot is past its time to live; an engine of its static fallback was taken."""
    STALE_WEIGHTS = "STALE_WEIGHTS"
    """The snapshot is past its time to live and names no fallback that is up; its last weights were used."""
    FALLBACK_CONFIGURED = "FALLBACK_CONFIGURED"
    """No snapshot has arrived yet; an engine of the configured fallback was taken."""
    # SHED
    SHED = "SHED"
    """More is asked for than capacity, or a pin, allows; this session is in the share that is shed."""
    THROTTLED = "THROTTLED"
    """Every engine of the route rejects requests; this session is in the share that does not add to them."""
    # REFUSED
    NO_SNAPSHOT = "NO_SNAPSHOT"
    """No snapshot has arrived yet, and no fallback is configured for the model."""
    UNKNOWN_ROUTE = "UNKNOWN_ROUTE"
    """The snapshot has no weights for this model and class at this cluster."""
    NO_ELIGIBLE_ENGINE = "NO_ELIGIBLE_ENGINE"
    """The snapshot excludes every engine from this route; its record says which for what reason."""
    ALL_DOWN = "ALL_DOWN"
    """Every engine that might be used is known to be down."""
    NO_OTHER_ENGINE = "NO_OTHER_ENGINE"
    """Engines are up, and the caller excluded all of them: a retry has nowhere to go."""
    INVALID_REQUEST = "INVALID_REQUEST"
    """The arguments are not of the types they should be."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Where one request goes.

    Attributes:
        outcome: whether there is an engine.
        engine_id: the engine; None unless ROUTED.
        address: where the engine listens; None where its operator gave no address.
        reason: by which step, or why not.
        epoch: the writer's epoch of the weights that decided; None where none did.
        version: the version in which this route's weights were last written; None where none decided.
        retry_after_s: what to tell the caller to wait; None where ROUTED.
        propensity: with what probability a session that gets an engine gets this one, over the sessions' hashes and
            given what was left out: 1 for a hint, and for a session that stays where it was released to. None where
            there is no engine. For inverse-propensity scoring of what was decided.
    """

    outcome: Outcome
    engine_id: str | None
    address: str | None
    reason: DecisionReason
    epoch: int | None = None
    version: int | None = None
    retry_after_s: float | None = None
    propensity: float | None = None

    def because(self, reason: DecisionReason, propensity: float | None) -> "Decision":
        """Give the same engine for another reason."""
        return Decision(self.outcome, self.engine_id, self.address, reason, self.epoch, self.version, None, propensity)
