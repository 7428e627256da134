"""Settings of the log. Pure: read from the file `headrace.toml` by `headrace.infra.configuration`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How workers log, to standard error.

    Attributes:
        format: `json`, one object a line; `text`, for people; `auto`: text where standard error is a terminal, else
            JSON.
    """

    format: Literal["auto", "json", "text"] = "auto"
