"""Settings of what may leave the company. Pure: `headrace.infra.configuration` reads them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """How `--redact` names engines.

    Attributes:
        secret: what their names are made with; the same secret, the same names. Empty: one for this run alone.
    """

    secret: str = ""
