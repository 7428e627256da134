"""A variant over recorded history: the problem of each recorded tick, decided by the variant's own policy and settings.

    recorded    the snapshots as they were, each with the problem it was made from
    variant     begins from the recorded snapshot before the range, and goes on from its own

Ticks are the recorded ones, with their offsets, times, epochs and versions: a variant with the recorded policy and
settings comes to the recorded bytes. A longer period takes the first tick of each; a shorter one has no inputs of its
own here, and is refused: `from_signals` folds the signals anew and ticks as it likes.

What a policy would have done to the load is not in recorded signals: those belong to the weights that stood. So the
problem's demand, round trips and engines are history's, and what becomes of them is for the load profiles to say.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from headrace.replay.core.history import HistoryError
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.recorded import RecordedTick
from headrace.replay.core.standing import Standing
from headrace.replay.core.told import Teller, pooled
from headrace.replay.core.variant import Variant
from headrace.schemas.weights import Snapshot
from headrace.solver.core.decide import Waiting, decide
from headrace.solver.core.effective import settings_of
from headrace.solver.core.inputs.assemble import assemble
from headrace.solver.core.inputs.in_work import in_work
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.core.linear import LinearSolver
from headrace.solver.core.tick import TickStamp
from headrace.solver.settings import SolverSettings


def play_recorded(ticks: Iterable[RecordedTick], standing: Standing, known: SolverSettings) -> Iterator[PlayedTick]:
    """Give the recorded run as played ticks; `known` are the settings where a tick's own are not in the history."""
    text, settings, teller = "", known, Teller()
    for tick in ticks:
        if tick.settings_text is not None and tick.settings_text != text:
            text, settings = tick.settings_text, settings_of(tick.settings_text)
        commit = tick.snapshot.commit
        view = standing.at(commit.inputs)
        problem = in_work(assemble(view, settings, commit.tick_ms), tick.previous)
        told = teller.tell(view.demands, pooled(view.engines))
        yield PlayedTick(commit.tick_ms, problem, tick.snapshot, tick.record, told, tick.previous, settings)


def rising(ticks: Iterable[PlayedTick]) -> Iterator[PlayedTick]:
    """Give ticks whose time rises: of two of one time, as where a writer takes over, the later; none from the past."""
    held: PlayedTick | None = None
    for tick in ticks:
        if held is not None and tick.now_ms > held.now_ms:
            yield held
        if held is None or tick.now_ms >= held.now_ms:
            held = tick
    if held is not None:
        yield held


def play(variant: Variant, ticks: Iterable[RecordedTick], standing: Standing, lp: LinearSolver) -> Iterator[PlayedTick]:
    """Give a variant's run over recorded ticks.

    Raises:
        HistoryError: the variant's period is shorter than the recorded one.
    """
    settings, previous, teller = variant.settings, None, Teller()
    last: int | None = None
    begun = False
    for tick in ticks:
        commit = tick.snapshot.commit
        if settings.period_ms < commit.period_ms:
            raise HistoryError(
                f"{variant.name}: solver.period_ms is {settings.period_ms}, below the {commit.period_ms} ms at which "
                "history ticks; take --from-signals for a shorter one"
            )
        if not begun:
            previous, begun = tick.previous, True
        slot = commit.tick_ms // settings.period_ms
        if slot == last:
            continue
        last = slot
        view = standing.at(commit.inputs)
        played = decided(tick, view, previous, settings, lp)
        told = teller.tell(view.demands, pooled(view.engines))
        if played is not None:
            yield replace(played, told=told)
            previous = played.snapshot


def decided(
    tick: RecordedTick, view: StateView, previous: Snapshot | None, settings: SolverSettings, lp: LinearSolver
) -> PlayedTick | None:
    """Decide one recorded tick anew; None where the policy waits, as before the very first snapshot."""
    commit = tick.snapshot.commit
    # Engines measured what the recorded weights sent them, whatever the variant's own are.
    problem = in_work(assemble(view, settings, commit.tick_ms), tick.previous)
    stamp = TickStamp(commit.epoch, commit.version, commit.tick_ms, mode=commit.mode)
    decision = decide(problem, previous, settings, lp, stamp, commit.tick_ms - settings.first_wait_ms)
    if isinstance(decision, Waiting):
        return None
    made = decision.tick
    return PlayedTick(commit.tick_ms, problem, made.snapshot, made.record, previous=previous, settings=settings)
