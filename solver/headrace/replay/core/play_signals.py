"""A variant over signals: folded anew, ticked by the variant's own period, under an event-time clock.

    now        rises with the records' timestamps; never back
    tick at t  sees every record of a timestamp up to t
    begin      recorded states up to SETTLE_MS into the range; signals that they hold already count once

For ranges without recorded ticks, for other smoothing, and for a shorter period. Where ticks were recorded, `play` is
exact: it knows what the solver had read at each of them, and this does not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from headrace.replay.core.columnar.engine_windows import EngineWindows, pooled_windows
from headrace.replay.core.history import Span
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.signals_fold import Seen
from headrace.replay.core.told import Teller
from headrace.replay.core.variant import Variant
from headrace.schemas.check_state import State
from headrace.schemas.topics import SIGNALS_DEMAND, SIGNALS_ENGINE, SIGNALS_NETWORK
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.in_work import in_work
from headrace.solver.core.inputs.pooled_window import PooledWindow
from headrace.solver.core.inputs.state_view import StateFold, StateView
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import TickStamp

if TYPE_CHECKING:
    from headrace.schemas.state import EngineState

SETTLE_MS = 2_000
EPOCH = 1


@dataclass(slots=True)
class SignalsView:
    """What a solver would see, kept up to date tick by tick. `known` holds the fleet and its profiles.

    States that come as columns stand without their latencies: `pools` and `windows` have what is read of them.
    """

    known: StateFold
    tables: dict[str, dict[bytes, State]] = field(default_factory=dict[str, dict[bytes, State]])
    windows: dict[bytes, PooledWindow] = field(default_factory=dict[bytes, PooledWindow])
    pools: EngineWindows = field(default_factory=EngineWindows)

    def begin(self, role: str, states: Mapping[bytes, State]) -> None:
        """Take up the recorded states of a signals topic."""
        self.tables[role] = {key: replace(state, panes=b"") for key, state in states.items()}
        if role == SIGNALS_ENGINE:
            self._windows_of(states)

    def take(self, seen: Seen) -> StateView:
        """Take what came since the tick before, and give what stands."""
        for record in seen.declared:
            self.known.offer(record)
        engines = self.tables.setdefault(SIGNALS_ENGINE, {})
        for key in seen.gone:
            engines.pop(key, None)
            self.windows.pop(key, None)
            self.pools.forget(key)
        for columns in seen.columns:
            engines.update(columns.bare_states())
            self.windows.update(pooled_windows(columns))
            self.pools.take(columns)
        self._windows_of(seen.states.get(SIGNALS_ENGINE, {}))
        for role, states in seen.states.items():
            self.tables.setdefault(role, {}).update(states)
        demands, links = (self.tables.get(role, {}) for role in (SIGNALS_DEMAND, SIGNALS_NETWORK))
        return replace(self.known.view(), engines=engines, demands=demands, links=links, windows=self.windows)  # type: ignore[arg-type]  # each by its role

    def _windows_of(self, states: Mapping[bytes, State]) -> None:
        """Take note of engines' states that have their latencies."""
        for key, state in states.items():
            self.windows.pop(key, None)
            self.pools.put(key, cast("EngineState", state))


def instants(span: Span, period_ms: int) -> range:
    """Give the instants of the ticks of a range, ms: its periods' ends, from SETTLE_MS into it on."""
    return range(-(-(span.from_ms + SETTLE_MS) // period_ms) * period_ms, span.to_ms, period_ms)


def play_signals(
    variant: Variant,
    ticks: Iterable[tuple[int, Seen]],
    view: SignalsView,
    previous: Snapshot | None,
    lp: LinearSolver,
) -> Iterator[PlayedTick]:
    """Give a variant's run.

    Args:
        variant: what to run.
        ticks: instant of each, ms, and what was seen until then since the one before.
        view: what it is taken into; states of before the range are in it.
        previous: the snapshot that stood when the range began, or None.
        lp: solves the linear programs.
    """
    settings = variant.settings
    version = 0 if previous is None else previous.commit.version
    epoch = EPOCH if previous is None else previous.commit.epoch + 1
    teller = Teller()
    for tick_ms, seen in ticks:
        stood = view.take(seen)
        problem, told = (
            in_work(assemble(stood, settings, tick_ms), previous),
            teller.tell(stood.demands, view.pools.pooled()),
        )
        stamp = TickStamp(epoch, version + 1, tick_ms)
        decision = decide(problem, previous, settings, lp, stamp, tick_ms - settings.first_wait_ms)
        if not isinstance(decision, Waiting):
            tick = decision.tick
            yield PlayedTick(tick_ms, problem, tick.snapshot, tick.record, told, previous, settings)
            previous, version = tick.snapshot, version + 1
