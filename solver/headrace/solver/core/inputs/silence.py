"""When an engine counts as silent, and how much of it may still be used.

    lag     = now - newest word of any engine          what everybody is late by is the pipe's delay, nobody's silence
    silence = newest word of any engine - its own      while lag < lost_after_ms; else now - its own
    ageing  = min(ageing_after_ms, missed_ageing x its own period)
    expired = min(expired_after_ms, missed_expired x its own period)
    left    = 1 up to ageing, a straight line to 0 at expired, then STALE

An engine that reports every second and misses three reports is in trouble; one that is scraped every 15 s is not. The
period is what its state says; without one the fixed bounds stand. When all engines fall silent at once the fault is the
telemetry's: none fades, until lost_after_ms calls it lost. Signals from the tick's future count as fresh, but for those
of a clock that is more than AHEAD_MS ahead: when such an engine last spoke is not known, and nobody is measured by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.schemas.state import DemandState, EngineState
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.settings import SolverSettings

AHEAD_MS = 60_000
"""A signal dated further into the tick's future than this is of a clock that is wrong."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The instants that silence is counted from: for engines, and for demand, which may come by another pipe.

    `lag_ms` is how old the newest word of any engine is, `demand_until_ms` when the newest of any demand was: None
    where there is none, and never after `now_ms`.
    """

    settings: SolverSettings
    now_ms: int
    engines_ms: int
    demand_ms: int
    lag_ms: int
    demand_until_ms: int | None

    def silence_ms(self, state: EngineState) -> int:
        """Give how long an engine has said nothing while others spoke."""
        return max(0, self.engines_ms - state.last_signal_ms)

    def bounds_ms(self, state: EngineState) -> tuple[int, int]:
        """Give the silence at which an engine begins to fade, and at which it is out."""
        ageing, expired = self.settings.ageing_after_ms, self.settings.expired_after_ms
        if state.period_ms is None or state.period_ms <= 0:
            return ageing, expired
        return (
            min(ageing, round(self.settings.missed_ageing * state.period_ms)),
            min(expired, round(self.settings.missed_expired * state.period_ms)),
        )

    def left(self, state: EngineState) -> float:
        """Give the share of capacity that silence leaves."""
        silence_ms = self.silence_ms(state)
        ageing, expired = self.bounds_ms(state)
        if silence_ms <= ageing:
            return 1.0
        return (expired - silence_ms) / (expired - ageing) if silence_ms < expired else 0.0

    def stale(self, state: EngineState) -> str | None:
        """Say that an engine has been silent for too long, or that its clock cannot tell; None where neither is so."""
        if self._is_ahead(state.last_signal_ms):
            return f"its clock is {(state.last_signal_ms - self.now_ms) / 60_000:.0f} min ahead"
        silence_ms, (_, expired) = self.silence_ms(state), self.bounds_ms(state)
        if silence_ms < expired:
            return None
        period = "" if state.period_ms is None else f", it reports every {state.period_ms / 1000:.1f} s"
        return f"silent for {silence_ms / 1000:.1f} s; out from {expired / 1000:.1f} s{period}"

    def demand_expired(self, state: DemandState) -> bool:
        """Say whether nothing is heard of a route's demand any more."""
        from_ms, to_ms = self.demand_heard_ms
        return not from_ms < state.last_signal_ms <= to_ms

    @property
    def demand_heard_ms(self) -> tuple[int, int]:
        """Give after which instant a demand's last signal must be, and until when, for it to be heard of."""
        return self.demand_ms - self.settings.expired_after_ms, self.now_ms + AHEAD_MS

    def _is_ahead(self, signal_ms: int) -> bool:
        return signal_ms - self.now_ms > AHEAD_MS


def hearing_of(view: StateView, settings: SolverSettings, now_ms: int) -> Hearing:
    """Find the newest words of a view; where the newest is `lost_after_ms` old, silence is counted from now."""
    engines = _newest((state.last_signal_ms for state in view.engines.values()), now_ms)
    demand = _newest((state.last_signal_ms for state in view.demands.values()), now_ms)
    since = _since(engines, settings, now_ms)
    of_demand = _since(max(engines, demand), settings, now_ms)
    until = min(demand, now_ms) if view.demands else None
    return Hearing(settings, now_ms, since, of_demand, max(0, now_ms - engines), until)


def _newest(signals_ms: Iterable[int], now_ms: int) -> int:
    return max((ms for ms in signals_ms if ms - now_ms <= AHEAD_MS), default=now_ms)


def _since(newest_ms: int, settings: SolverSettings, now_ms: int) -> int:
    return now_ms if now_ms - newest_ms >= settings.lost_after_ms else min(newest_ms, now_ms)
