"""A simulated engine: ready replicas x measured slots; a bounded queue when they are all busy; faults on command.

    admitted   TTFT, TBOT = slow x measured curve (requests in service per ready replica, itself included)
               it holds its slot for TTFT + output tokens x TBOT
    all busy   it waits, first come first served; the queue drains at the measured capacity, since the slots are
               capacity x latency at the wall (Little's law)
    queue full refused: QUEUE_FULL

Latencies are fixed on admission: a request does not slow down when others follow it.

    UP ──kill──► DEAD ──revive──► UP, replicas ready one per ramp_s          in service and waiting are lost on kill
    UP ──restart──► DEAD for down_s ──► UP, likewise

Pure: it is told the time, and gives what it admitted; the simulation schedules the ends.
"""

from collections import deque
from dataclasses import dataclass

from numpy.random import Generator

from headrace.infra.fleet.curves import ReplicaCurve
from headrace.infra.fleet.engine_signals import Observations
from headrace.infra.fleet.request import Attempt, EngineRefusal
from headrace.schemas.fleet import EngineSpec
from headrace.schemas.signals import Metric


@dataclass(frozen=True, slots=True)
class EngineTimes:
    """How long an engine's changes take, and what its queue holds: `queue_per_slot` waiting requests for each slot."""

    down_s: float = 3.0
    ramp_s: float = 1.0
    queue_per_slot: float = 2.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """An attempt that got a slot: when its first token and its last leave the engine. `life` is the engine's."""

    attempt: Attempt
    life: int
    first_token_s: float
    finish_s: float


@dataclass(frozen=True, slots=True)
class Queued:
    """An attempt that waits for a slot."""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """An attempt that the engine did not take."""

    reason: EngineRefusal


@dataclass(frozen=True, slots=True)
class Lost:
    """An attempt that died with its engine. `reason` says whether its user had seen a token."""

    attempt: Attempt
    reason: EngineRefusal


class SimulatedEngine:
    """One engine. Mutable inside; times are seconds of virtual time and never go back."""

    def __init__(
        self, spec: EngineSpec, replicas: int, curve: ReplicaCurve, times: EngineTimes, rng: Generator
    ) -> None:
        self.spec = spec
        self.curve = curve
        self.times = times
        self.desired = replicas
        self.alive = True
        self.silent = False
        self.slow = 1.0
        self.error_share = 0.0
        self.life = 1
        self.observed = Observations(spec.models[0])
        self._rng = rng
        self._ready_base = replicas
        self._ready_since_s = 0.0
        self._running: dict[int, Admitted] = {}
        self._queue: deque[tuple[float, Attempt]] = deque()

    # --- what it is -------------------------------------------------------------------------------------------------

    def ready(self, now_s: float) -> int:
        """Give the ready replicas: on the way up one more per ramp_s, down at once; 0 while dead."""
        if not self.alive:
            return 0
        started = int((now_s - self._ready_since_s) / self.times.ramp_s)
        return min(self.desired, self._ready_base + max(0, started))

    @property
    def running(self) -> int:
        """Requests in service."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def capacity_rps(self, now_s: float) -> float:
        """Give what it can serve now: ready replicas x measured capacity / slow factor."""
        return self.ready(now_s) * self.curve.capacity_rps / self.slow

    # --- requests ---------------------------------------------------------------------------------------------------

    def offer(self, now_s: float, attempt: Attempt) -> Admitted | Queued | TurnedAway:
        """Take an attempt that has just reached the engine, or turn it away with the reason."""
        if not self.alive:
            return TurnedAway(EngineRefusal.CONNECTION_REFUSED)
        slots = self.ready(now_s) * self.curve.slots
        if slots == 0:
            return TurnedAway(EngineRefusal.NO_READY_REPLICA)
        if self.error_share > 0.0 and self._rng.random() < self.error_share:
            self.observed.failed += 1
            return TurnedAway(EngineRefusal.ENGINE_ERROR)
        if len(self._running) < slots and not self._queue:
            return self._admit(now_s, now_s, attempt)
        if len(self._queue) >= self.times.queue_per_slot * slots:
            return TurnedAway(EngineRefusal.QUEUE_FULL)
        self._queue.append((now_s, attempt))
        return Queued()

    def finish(self, now_s: float, admitted: Admitted) -> tuple[bool, tuple[Admitted, ...]]:
        """End an attempt at its `finish_s`; give whether it was still in service, and who takes the free slots."""
        if admitted.life != self.life or self._running.pop(admitted.attempt.request.number, None) is None:
            return False, ()
        return True, self.fill(now_s)

    def fill(self, now_s: float) -> tuple[Admitted, ...]:
        """Admit from the queue while slots are free: after an end, and when replicas become ready."""
        free = self.ready(now_s) * self.curve.slots - len(self._running)
        out: list[Admitted] = []
        while self._queue and len(out) < free:
            since_s, attempt = self._queue.popleft()
            out.append(self._admit(now_s, since_s, attempt))
        return tuple(out)

    def _admit(self, now_s: float, since_s: float, attempt: Attempt) -> Admitted:
        replicas = max(1, self.ready(now_s))
        ttft_s, tbot_s = self.curve.at((len(self._running) + 1) / replicas)
        ttft_s, tbot_s = ttft_s * self.slow, tbot_s * self.slow
        first_token_s = now_s + ttft_s
        finish_s = first_token_s + attempt.request.output_tokens * tbot_s
        admitted = Admitted(attempt, self.life, first_token_s, finish_s)
        self._running[attempt.request.number] = admitted
        self.observed.add(now_s, Metric.QUEUE, now_s - since_s)
        self.observed.add(first_token_s, Metric.TTFT, first_token_s - since_s)
        self.observed.add(finish_s, Metric.TBOT, tbot_s)
        self.observed.add(finish_s, Metric.E2E, finish_s - since_s)
        return admitted

    # --- faults -----------------------------------------------------------------------------------------------------

    def kill(self, now_s: float) -> tuple[Lost, ...]:
        """Die: all that was in service or waiting is lost, what was observed too. A dead engine stays dead."""
        if not self.alive:
            return ()
        lost = [
            Lost(a.attempt, EngineRefusal.BROKEN_OFF if a.first_token_s <= now_s else EngineRefusal.CONNECTION_LOST)
            for a in self._running.values()
        ]
        lost += [Lost(attempt, EngineRefusal.CONNECTION_LOST) for _, attempt in self._queue]
        self.alive = False
        self.life += 1
        self._running.clear()
        self._queue.clear()
        self.observed.reset(now_s)
        return tuple(lost)

    def revive(self, now_s: float) -> None:
        """Come back with counters at zero and one replica ready; the others follow, one per ramp_s."""
        if self.alive:
            return
        self.alive = True
        self._ready_base, self._ready_since_s = min(1, self.desired), now_s
        self.observed.reset(now_s)

    def scale(self, now_s: float, replicas: int) -> tuple[Lost, ...]:
        """Set the wanted replicas: fewer at once (requests in service stay to their end), more by the ramp.

        Gives what waited, where nothing is left to wait for.
        """
        self._ready_base, self._ready_since_s = min(self.ready(now_s), replicas), now_s
        self.desired = replicas
        if replicas:
            return ()
        lost = tuple(Lost(attempt, EngineRefusal.NO_READY_REPLICA) for _, attempt in self._queue)
        self._queue.clear()
        return lost

    def heal(self) -> None:
        """End slowness, errors and silence."""
        self.slow, self.error_share, self.silent = 1.0, 0.0, False
