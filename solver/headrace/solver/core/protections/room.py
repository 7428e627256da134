"""What engines may lose without harm: the others are filled to `full` at most.

    spare = capacity of the engines that may serve it - demand / full         of each kind of request, work per second

A kind is a model with what its classes ask of an engine; of a model as a whole all its demand is counted. A request
that an engine fails now and then is better off there than shed. It is an estimate: what a round trip that is not known
forbids, and what two models take from each other at engines that serve both, only the program can tell.
"""

from headrace.solver.core.problem import Engine, Problem

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
        self._demand = demand
        self._capacity = dict.fromkeys(demand, 0.0)
        for engine in problem.engines:
            for kind in self._served(engine) if engine.capacity_rps > 0.0 else ():
                self._capacity[kind] += engine.capacity_rps

    def take(self, engine: Engine, rps: float, full: float) -> float:
        """Take so much of an engine's capacity, or as much of it as can be spared; gives what was taken.

        At `full` 0 nothing can that is asked for.
        """
        kinds = self._served(engine)
        spare = [self._capacity[k] - self._demand[k] / full if full > 0.0 else 0.0 for k in kinds if self._demand[k]]
        taken = max(min([rps, *spare]), 0.0)
        for kind in kinds:
            self._capacity[kind] -= taken
        return taken

    def _served(self, engine: Engine) -> list[_Kind]:
        return [
            kind
            for model in engine.models
            for kind in self._kinds.get(model, ())
            if set(kind[1]) <= set(engine.capabilities) and (not kind[2] or set(kind[2]) & set(engine.residency))
        ]
