"""Who an engine is held against, and among whom only so many are penalised at once: its groups.

    pool of three or more   the pool: same site, models, capabilities and residency, so asked the same things
    smaller pool            each of its models: all engines that serve it, at whatever site

In a pool of one or two nobody says which engine is the odd one, and a share of so few is none or all of them. Their
requests can go where the model is served otherwise, so that is what they are counted with. Drained engines count
nowhere: they are not missed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.schemas.weights import Reason
from headrace.solver.core.problem import Engine

FEWEST = 3
"""Engines of a pool that is held against itself."""
Group = tuple[object, ...]
"""What a group goes by: a pool's common properties, or a model alone."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Engines that are alike to a request, by id; `there` are those with usable capacity."""

    members: tuple[Engine, ...]
    there: tuple[Engine, ...]

    @property
    def is_small(self) -> bool:
        """Say whether it is too small to be held against itself."""
        return len(self.members) < FEWEST

    @property
    def groups(self) -> tuple[Group, ...]:
        """Give the groups that its engines are counted in."""
        one = self.members[0]
        if self.is_small:
            return tuple((model,) for model in one.models)
        return ((one.site, one.models, one.capabilities, one.residency),)


def pools_of(engines: Iterable[Engine]) -> tuple[Pool, ...]:
    """Give the pools of engines, without those that are drained."""
    pools: dict[Group, list[Engine]] = {}
    for engine in sorted(engines, key=lambda e: e.engine_id):
        if engine.exclusion is None or engine.exclusion.reason is not Reason.DRAINED:
            pools.setdefault((engine.site, engine.models, engine.capabilities, engine.residency), []).append(engine)
    return tuple(Pool(tuple(each), tuple(e for e in each if e.capacity_rps > 0.0)) for each in pools.values())


class Groups:
    """The groups of a fleet. `members` of a model are all engines that serve it, those of large pools too."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._of = {e.engine_id: pool.groups for pool in pools for e in pool.members}
        asked = {group for pool in pools for group in pool.groups}
        self._members: dict[Group, list[Engine]] = {group: [] for group in asked}
        for pool in pools:
            models = tuple((model,) for model in pool.members[0].models)
            for group in dict.fromkeys((*pool.groups, *models)):
                if group in asked:
                    self._members[group] += pool.members

    def of(self, engine: Engine) -> tuple[Group, ...]:
        """Give the groups of an engine."""
        return self._of[engine.engine_id]

    def short_of(self, is_sound: Callable[[Engine], bool], share: float) -> frozenset[Group]:
        """Give the groups of whose engines less than a share is sound."""
        return frozenset(
            group for group, members in self._members.items() if sum(map(is_sound, members)) < share * len(members)
        )

    def capacities(self) -> Mapping[Group, float]:
        """Give the usable capacity of each group, RPS of work 1."""
        return {group: sum(e.capacity_rps for e in members) for group, members in self._members.items()}
