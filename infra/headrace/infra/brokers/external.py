"""A broker that somebody else runs: we only make sure that it answers."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from headrace.infra.brokers.contract import BrokerError
from headrace.infra.brokers.ready import wait_until_ready
from headrace.schemas.bus.settings import KafkaSettings

READY_TIMEOUT_S = 15.0


class ExternalBroker:
    """A running cluster, reached with whatever librdkafka options it needs."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    @property
    def kafka(self) -> KafkaSettings:
        """How to reach it."""
        return self._kafka

    def start(self) -> None:
        """Make sure that it answers.

        Raises:
            BrokerError: it does not; the message holds the client's reason.
        """
        wait_until_ready(self._kafka, READY_TIMEOUT_S, lambda: None)

    def stop(self) -> None:
        """Leave it alone: it is not ours."""

    def kill(self) -> None:
        """Refuse: it is not ours."""
        raise BrokerError(f"{self._kafka.bootstrap_servers} is an external broker: headrace does not kill it")

    def restart(self) -> None:
        """Refuse: it is not ours."""
        raise BrokerError(f"{self._kafka.bootstrap_servers} is an external broker: headrace does not restart it")

    def why_ended(self) -> str | None:
        """Give None: it is not watched."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def create(
    bootstrap_servers: str = "", options: Mapping[str, str] | None = None, kafka: KafkaSettings | None = None
) -> ExternalBroker:
    """Give an external broker, by its settings, or by its address and librdkafka options."""
    return ExternalBroker(kafka or KafkaSettings(bootstrap_servers=bootstrap_servers, options=options or {}))
