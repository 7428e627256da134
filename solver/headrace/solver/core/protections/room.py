"""What engines may lose without anybody being shed for it: the others are filled to `FULL` at most.

    spare = capacity of the engines that may serve it - demand / FULL         of each kind of request, work per second

A kind is a model with what its classes ask of an engine; of a model as a whole all its demand is counted. A request
that an engine fails now and then is better off there than shed. It is an estimate: what a round trip that is not known
forbids, and what two models take from each other at engines that serve both, only the program can tell.
"""

from headrace.solver.core.problem import Engine, Problem

FULL = 0.95
"""Above it waiting grows out of bounds, and so does the harm of sending more there; nor is there a retry left there."""
_Kind = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Model, capabilities asked for, residencies allowed (none: any)."""


class Room:
    """Of one problem; what is taken is gone."""

    def __init__(self, problem: Problem) -> None:
        self._kinds: dict[str, list[_Kind]] = {}
        demand: dict[_Kind, float] = {}
        for row in problem.rows:
            model = row.route.model
            for kind in dict.fromkeys(((model, (), ()), (model, row.requires, row.residency))):
                demand[kind] = demand.get(kind, 0.0) + row.demand_work
        for kind in sorted(demand):
            self._kinds.setdefault(kind[0], []).append(kind)
        self._spare = {kind: -asked / FULL for kind, asked in demand.items()}
        for engine in problem.engines:
            for kind in self._served(engine) if engine.capacity_rps > 0.0 else ():
                self._spare[kind] += engine.capacity_rps

    def take(self, engine: Engine, rps: float) -> float:
        """Take so much of an engine's capacity, or as much of it as can be spared; gives what was taken."""
        kinds = self._served(engine)
        taken = max(min([rps, *(self._spare[kind] for kind in kinds)]), 0.0)
        for kind in kinds:
            self._spare[kind] -= taken
        return taken

    def _served(self, engine: Engine) -> list[_Kind]:
        return [
            kind
            for model in engine.models
            for kind in self._kinds.get(model, ())
            if set(kind[1]) <= set(engine.capabilities) and (not kind[2] or set(kind[2]) & set(engine.residency))
        ]
