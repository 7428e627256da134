"""Settings of what may leave the company. Pure: read from the file `headrace.toml` by `headrace.infra.config`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """How `--redact` names engines.

    Attributes:
        secret: what their names are made with; the same secret, the same names. Empty: one for this run alone.
    """

    secret: str = ""
