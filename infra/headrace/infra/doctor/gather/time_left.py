"""One budget of time for all that is asked; every call gets the smaller of its own bound and what is left."""

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaException

from headrace.infra.kafka_edge import reason_of

CALL_S = 5.0
"""What one call may take."""
LEAST_S = 0.05

K = TypeVar("K")
V = TypeVar("V")


class TimeLeft:
    """Counts down from `budget_s`."""

    def __init__(self, budget_s: float) -> None:
        self._end_s = time.monotonic() + budget_s

    @property
    def is_up(self) -> bool:
        """Whether nothing is left."""
        return time.monotonic() >= self._end_s

    @property
    def call_s(self) -> float:
        """What the next call may take."""
        return max(LEAST_S, min(CALL_S, self._end_s - time.monotonic()))

    def answers(self, futures: Mapping[K, Future[V]]) -> tuple[dict[K, V], dict[K, BaseException]]:
        """Wait for requests; gives what was answered, and what each of the others failed with."""
        done: dict[K, V] = {}
        failed: dict[K, BaseException] = {}
        for key, future in futures.items():
            try:
                done[key] = future.result(timeout=self.call_s)
            except (KafkaException, TimeoutError) as error:
                failed[key] = error
        return done, failed


def why(error: BaseException) -> str:
    """Give a failure in the client's own words."""
    if isinstance(error, KafkaException):
        return reason_of(error)
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)
