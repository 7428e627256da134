"""`SignalPublisher`: an engine's own process tells what it observes, one record a second.

    publisher = SignalPublisher(KafkaSettings("kafka-1:9093"), "headrace.signals.engine", "engine-a", "llama-3.1-8b")
    publisher.start()
    publisher.observe(ttft_s=0.21, tbot_s=0.011)

A thread closes a period each second and publishes it, with or without requests: silence means that nobody is there.
While Kafka is away records wait in a bounded queue; what does not fit is dropped and counted. No request ever waits.
"""

import threading
import time
from collections.abc import Callable

from headrace.schemas.bus.publisher import Dropped, Publisher, PublisherCounts
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.check_signals import check_signal
from headrace.schemas.codec import encode
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import identifier_problem
from headrace.schemas.signals import EngineSignals, EngineStatus, Health, Vantage
from headrace.streams.publish.observations import Observations, Observed

PERIOD_MS = 1_000


class SignalPublisher:
    """Publishes one engine's signals. `start()` begins, `stop()` ends and flushes; a context manager does both.

    Args:
        kafka: where.
        topic: the full name of the engine signals topic.
        engine_id: as the fleet knows it.
        model: what is served, where `observe` does not say.
        source: names this process, where an engine has several; the engine's own name by default.
        on_problem: called in the publisher's thread with a sentence for whatever is dropped.

    Raises:
        InvalidInputError: a name is no identifier.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        engine_id: str,
        model: str,
        *,
        source: str = "",
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        names = {"engine_id": engine_id, "model": model, "source": source or engine_id}
        problems = [found for name, value in names.items() if (found := identifier_problem(name, value)) is not None]
        if problems:
            raise InvalidInputError("signal publisher", tuple(problems))
        self._topic = topic
        self._engine_id = engine_id
        self._model = model
        self._source = source or engine_id
        self._on_problem = on_problem or _say_nothing
        self._publisher = Publisher(kafka, on_error=self._on_problem)
        self._observations = Observations()
        self._status: EngineStatus | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-signals", daemon=True)

    def observe(
        self,
        *,
        ttft_s: float | None = None,
        tbot_s: float | None = None,
        e2e_s: float | None = None,
        queue_s: float | None = None,
        model: str = "",
    ) -> None:
        """Tell of one request; what it has not is None. Never waits, never raises; from any thread."""
        self._observations.observe(Observed(model or self._model, ttft_s, tbot_s, e2e_s, queue_s))

    def status(
        self,
        health: Health = Health.HEALTHY,
        *,
        replicas_ready: int | None = None,
        running: float | None = None,
        waiting: float | None = None,
        kv_usage: float | None = None,
    ) -> None:
        """Tell how the engine is; it is published with each period until told anew."""
        self._status = EngineStatus(health, None, replicas_ready, None, running, waiting, kv_usage)

    @property
    def counts(self) -> PublisherCounts:
        """What became of the records."""
        return self._publisher.counts

    @property
    def dropped(self) -> int:
        """How many requests found no room, or told no latency."""
        return self._observations.dropped + self._observations.invalid

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Publish what is left, and wait for it, at most so long."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        self._publisher.close(timeout_s)

    def __enter__(self) -> "SignalPublisher":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def close_period(self, start_ms: int, end_ms: int) -> EngineSignals | None:
        """Give what was observed as the signals of a period; None where they would be refused, which is said."""
        distributions = self._observations.close()
        period = start_ms, end_ms
        signals = EngineSignals(self._engine_id, self._source, Vantage.ENGINE, *period, distributions, self._status)
        problem = check_signal(signals, end_ms)
        if problem is None:
            return signals
        self._on_problem(f"a period is not published: {problem.detail}")
        return None

    def _run(self) -> None:
        start_ms = _now_ms()
        while True:
            is_last = self._stopped.wait(PERIOD_MS / 1000)
            end_ms = _now_ms()
            if end_ms < start_ms or end_ms - start_ms > 10 * PERIOD_MS:
                # The clock stepped, or this process slept: nothing is known of when in between it was.
                start_ms = end_ms
            signals = self.close_period(start_ms, end_ms)
            if signals is not None:
                done = self._publisher.publish(self._topic, signals.key, encode(signals), end_ms)
                if isinstance(done, Dropped):
                    self._on_problem(done.sentence)
            start_ms = end_ms
            if is_last:
                return


def _say_nothing(_: str) -> None:
    """Let a problem be counted alone."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
