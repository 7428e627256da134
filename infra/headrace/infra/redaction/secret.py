"""The secret that engines' names outside are made with: what is configured, or one for this run."""

import secrets
from collections.abc import Callable

from headrace.infra.redaction.redact import Redaction
from headrace.infra.redaction.settings import RedactSettings


def open_redaction(settings: RedactSettings, say: Callable[[str], None]) -> Redaction:
    """Give the redaction; `say` is told where its names will not be those of the next run."""
    if settings.secret:
        return Redaction(settings.secret.encode())
    say("engines' names are of this run alone; redact.secret keeps them from run to run")
    return Redaction(secrets.token_bytes(32))
