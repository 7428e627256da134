"""What a broker is to the rest: an address, and start, stop, kill, restart."""

from types import TracebackType
from typing import Protocol, Self

from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError


class BrokerError(HeadraceError):
    """A broker could not be started or reached; the message says why and what to do."""


class Broker(Protocol):
    """A Kafka-protocol broker. A context manager: it is stopped at the end of the block."""

    @property
    def kafka(self) -> KafkaSettings:
        """How to reach it. Stays the same over restarts."""
        ...

    def start(self) -> None:
        """Start it and wait until it answers."""
        ...

    def stop(self) -> None:
        """Stop it in good order and remove its temporary files."""
        ...

    def kill(self) -> None:
        """End it as a crash would."""
        ...

    def restart(self) -> None:
        """Stop it if it runs, and start it at the same address; what it stored on disk is kept."""
        ...

    def why_ended(self) -> str | None:
        """Say why it ended by itself, with the end of its log; None while it runs, and once it was stopped."""
        ...

    def __enter__(self) -> Self:
        """Give the broker itself, started."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        ...
