"""What a planted fault is; F, W and N are severities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from doctor_system import System
from headrace.infra.doctor.core.contract import Severity

MINUTE_MS = 60_000
DAY_MS = 86_400_000
APPLY = "headrace topics apply"
F, W, N = Severity.FAULT, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Planted:
    """One fault. `says` and `mend` are parts of the sentence and of one of the commands."""

    name: str
    plant: Callable[[System], None]
    check: str
    severity: Severity
    says: str
    mend: str
    on: Literal["broker", "apache", "picture"] = "broker"
