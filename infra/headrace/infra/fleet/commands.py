"""What can be done to a running fleet, as values: faults, repairs, surges, and the name of the phase that begins."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kill:
    """The engine dies at once, with all it was doing."""

    engine_id: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} killed"


@dataclass(frozen=True, slots=True)
class Revive:
    """A dead engine comes back, one replica after the other."""

    engine_id: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} comes back"


@dataclass(frozen=True, slots=True)
class Restart:
    """The engine dies and comes back by itself."""

    engine_id: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} restarts"


@dataclass(frozen=True, slots=True)
class Slow:
    """Every latency of the engine is multiplied; its capacity is divided by the same."""

    engine_id: str
    factor: float

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} slow, x{self.factor:g}"


@dataclass(frozen=True, slots=True)
class Errors:
    """This share of what reaches the engine is answered with an error, at once."""

    engine_id: str
    share: float

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} answers {self.share:.0%} with errors"


@dataclass(frozen=True, slots=True)
class Silence:
    """The engine serves, and publishes nothing."""

    engine_id: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} publishes nothing"


@dataclass(frozen=True, slots=True)
class Heal:
    """Slowness, errors and silence of the engine end."""

    engine_id: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} healed"


@dataclass(frozen=True, slots=True)
class Replicas:
    """The engine is scaled: down at once, up by its ramp."""

    engine_id: str
    count: int

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"{self.engine_id} scaled to {self.count} replica{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Surge:
    """The cluster's arrivals are its normal rate times this; 1 ends the surge."""

    cluster: str
    factor: float

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return (
            f"{self.cluster} at its normal rate" if self.factor == 1.0 else f"{self.cluster} surges, x{self.factor:g}"
        )


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of the run begins; the summary reports latencies by phase."""

    name: str

    @property
    def sentence(self) -> str:
        """The command as the event log says it."""
        return f"phase {self.name}"


EngineCommand = Kill | Revive | Restart | Slow | Errors | Silence | Heal | Replicas
Command = EngineCommand | Surge | Phase
