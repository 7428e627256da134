"""Router to Kafka: a thread publishes the demand that a router counted, one record per route and period.

Where it is told to, it also publishes the latencies seen from here, one record per engine and period (vantage GATEWAY,
which the streams keep apart from what engines say of themselves), and the sampled requests, one record per route.

Periods are closed by the monotonic clock, anchored to the wall clock by which requests are dated, and anchored anew
where the wall steps away from it by more than a period: the counter then begins anew, and what it had to drop is said.

Requests never wait for it: they only append to the counter. Failure mode: while the broker is away records wait in the
publisher's bounded queue with their own event times; what does not fit is dropped and counted there.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from headrace.dataplane.demand import DemandCounter
from headrace.dataplane.latencies import LatencyCounter
from headrace.dataplane.routed_sample import RoutedSample
from headrace.schemas.bus.publisher import Dropped, Publisher, PublisherCounts
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.codec import encode
from headrace.schemas.routed import RoutedRequests
from headrace.schemas.signals import Demand, EngineSignals

SETTLE_MS = 20
"""A period is closed this long after its end, so that requests counted at its last instant are in it."""


class AnchoredClock:
    """Time that runs on evenly: `monotonic` + offset, where the offset is anew that of `wall` once they are apart.

    Args:
        apart_ms: up to this difference the wall is not followed: slewing and small steps do not show.
        wall: milliseconds since the epoch.
        monotonic: milliseconds since any instant.
    """

    def __init__(
        self, apart_ms: int, wall: Callable[[], int] | None = None, monotonic: Callable[[], int] | None = None
    ) -> None:
        self._apart_ms = apart_ms
        self._wall = wall or _wall_ms
        self._monotonic = monotonic or _monotonic_ms
        self._offset_ms = self._wall() - self._monotonic()

    def now_ms(self) -> int:
        """Give the instant by the anchor that stands."""
        return self._monotonic() + self._offset_ms

    def follow(self) -> int:
        """Anchor anew if the wall stepped; gives by how many milliseconds, 0 where it did not."""
        apart_ms = self._wall() - self.now_ms()
        if abs(apart_ms) <= self._apart_ms:
            return 0
        self._offset_ms += apart_ms
        return apart_ms


@dataclass(frozen=True, slots=True)
class LatencyReports:
    """What to report latencies from, and the full name of the engine signals topic to report them to."""

    topic: str
    counter: LatencyCounter


@dataclass(frozen=True, slots=True)
class RoutedReports:
    """The sample to publish, and the full name of the topic of routed requests."""

    topic: str
    sample: RoutedSample


class DemandReporter:
    """Publishes one counter's periods. `start()` begins, `stop()` ends and flushes; both may be called once.

    Args:
        kafka: where.
        topic: the full name of the demand signals topic.
        counter: what to report; nobody else may call its `close`.
        on_problem: called in the reporter's thread with a sentence for each record dropped and each failure.
        latencies: what else to report; None reports no latencies.
        routed: the same of single requests.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        counter: DemandCounter,
        on_problem: Callable[[str], None] | None = None,
        latencies: LatencyReports | None = None,
        routed: RoutedReports | None = None,
    ) -> None:
        self._topic = topic
        self._counter = counter
        self._on_problem = on_problem
        self._latencies = latencies
        self._routed = routed
        self._unrecorded = 0
        self._clock = AnchoredClock(counter.period_ms)
        self._publisher = Publisher(kafka, on_error=self._say)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"demand-{counter.cluster}", daemon=True)

    @property
    def counts(self) -> PublisherCounts:
        """What became of the records so far."""
        return self._publisher.counts

    def start(self) -> None:
        """Begin to report; the period under way is the first."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Report the periods that are over, wait for the broker's answers and end; the open period is left out."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s + 1.0)
        self._publisher.close(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._publish_closed()
            self._stopping.wait(self._until_next_s())
        self._publish_closed()

    def _until_next_s(self) -> float:
        period_ms = self._counter.period_ms
        return (period_ms - (self._clock.now_ms() - SETTLE_MS) % period_ms) / 1000.0

    def _publish_closed(self) -> None:
        try:
            self._report(self._clock.follow(), self._clock.now_ms())
        except Exception as error:  # noqa: BLE001 - a fault in reporting must not end reporting
            self._say(f"{self._topic}: {type(error).__name__}: {error}")

    def _report(self, stepped_ms: int, now_ms: int) -> None:
        steps, dropped = self._counter.steps, self._counter.dropped
        demand = self._counter.close(now_ms - SETTLE_MS, stepped=bool(stepped_ms))
        if self._counter.steps > steps:
            self._say(
                f"{self._topic}: the clock stepped by {stepped_ms} ms, or the process was suspended; counting began "
                f"anew at {now_ms} ms, {self._counter.dropped - dropped} requests belong to no period"
            )
        for record in demand:
            self._publish(self._topic, record)
        if self._latencies is not None:
            for seen in self._latencies.counter.close(now_ms):
                self._publish(self._latencies.topic, seen)
        if self._routed is not None:
            self._report_routed(self._routed, now_ms)

    def _report_routed(self, routed: RoutedReports, now_ms: int) -> None:
        for record in routed.sample.close(now_ms):
            self._publish(routed.topic, record)
        dropped, self._unrecorded = routed.sample.dropped - self._unrecorded, routed.sample.dropped
        if dropped:
            self._say(f"{routed.topic}: {dropped} sampled requests are in no record: too many between two reports")

    def _publish(self, topic: str, record: Demand | EngineSignals | RoutedRequests) -> None:
        outcome = self._publisher.publish(topic, record.key, encode(record), record.period_end_ms)
        if isinstance(outcome, Dropped):
            self._say(f"{topic}: {outcome.reason}: {outcome.sentence}")

    def _say(self, sentence: str) -> None:
        if self._on_problem is not None:
            self._on_problem(sentence)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
