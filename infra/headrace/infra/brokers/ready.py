"""Waits until a broker answers a metadata request, or says why it never will."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaException

from headrace.infra.brokers.contract import BrokerError
from headrace.schemas.bus.clients import admin_client
from headrace.schemas.bus.settings import KafkaSettings

ATTEMPT_TIMEOUT_S = 1.0
PAUSE_S = 0.02


def wait_until_ready(kafka: KafkaSettings, timeout_s: float, why_never: Callable[[], str | None]) -> None:
    """Return once the broker names itself in its metadata.

    Args:
        kafka: how to reach it.
        timeout_s: how long to wait at most.
        why_never: gives the reason once it is known that it will never answer (its process ended), else None.

    Raises:
        BrokerError: it will never answer, or did not within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    last = "no answer"
    while True:
        reason = why_never()
        if reason is not None:
            raise BrokerError(reason)
        try:
            # A new client each time: librdkafka would wait out a growing back-off after a refused connection.
            if admin_client(kafka).list_topics(timeout=ATTEMPT_TIMEOUT_S).brokers:
                return
        except KafkaException as error:
            last = str(error)
        if time.monotonic() >= deadline:
            raise BrokerError(f"{kafka.bootstrap_servers} did not answer within {timeout_s:g} s: {last}")
        time.sleep(PAUSE_S)
