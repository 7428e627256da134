"""What goes through the protections: a problem, what is remembered of its engines, and what was changed so far."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.schemas.weights import EngineMemory, Protected
from headrace.solver.core.problem import Engine, Problem


@dataclass(frozen=True, slots=True)
class Moment:
    """When a tick is, and what is known of it.

    Attributes:
        now_ms: the tick's time.
        elapsed_s: how long it is since the last tick; 0 at the first, so nothing is learnt from it.
        spared: engines that keep what a penalty would take from them, since somebody would be shed for it.
    """

    now_ms: int
    elapsed_s: float
    spared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """What one protection does to one engine. Without a sentence only the memory changes.

    `factor` scales its capacity where the problem's engine is given by `scaled`; `engine` is what the program gets.
    """

    engine: Engine
    memory: EngineMemory
    factor: float = 1.0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A problem on its way through the protections. `remembered` is what the *next* tick is to know, by engine."""

    problem: Problem
    remembered: Mapping[str, EngineMemory]
    protections: tuple[Protected, ...] = ()

    def memory(self, engine_id: str) -> EngineMemory:
        """Give what is remembered of an engine; a neutral memory where nothing is."""
        return self.remembered.get(engine_id) or EngineMemory(engine_id)

    def changed(self, name: str, changes: Mapping[str, Change]) -> "Guarded":
        """Give the same with engines and memories changed, and the changes that have a sentence noted by `name`."""
        engines = tuple(c.engine if (c := changes.get(e.engine_id)) else e for e in self.problem.engines)
        notes = [
            Protected(engine_id, name, change.factor, change.sentence)
            for engine_id, change in sorted(changes.items())
            if change.sentence
        ]
        memories = {engine_id: change.memory for engine_id, change in changes.items()}
        return Guarded(
            replace(self.problem, engines=engines), {**self.remembered, **memories}, (*self.protections, *notes)
        )


def scaled(engine: Engine, factor: float, sentence: str) -> Engine:
    """Give an engine with its capacity scaled, and the reason among its sentences."""
    told = "; ".join(part for part in (engine.factor_sentence, sentence) if part)
    return replace(engine, factor=engine.factor * factor, factor_sentence=told)
