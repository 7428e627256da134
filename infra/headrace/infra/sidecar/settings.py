"""Settings of `headrace signals publish`. Pure: `headrace.infra.configuration` reads them."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """What the sidecar of an engine shows of itself; what it reads is said by its flags.

    Attributes:
        metrics_port: where Prometheus finds its metrics; 0 = nowhere.
        metrics_host: the address that the metrics are served at.
    """

    metrics_port: Annotated[int, Ge(0), Le(65_535)] = 0
    metrics_host: str = "127.0.0.1"
