"""What comes of it can be told: there is a tick that can be computed again, and it was decided, not held."""

from headrace.infra.overrides.rules import Stands
from headrace.schemas.overrides import Override, OverrideKind

FORCEABLE = True


def broken(stands: Stands, override: Override) -> str | None:
    """Say why it cannot be told; a freeze changes nothing, so nothing has to be foreseen of it."""
    if override.kind is OverrideKind.FREEZE or not stands.not_told:
        return None
    return f"what comes of it cannot be told: {stands.not_told}"
