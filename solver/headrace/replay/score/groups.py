"""The same sums by cluster, by model and by class: who fared how. At most `MOST` of each; later ones share the last."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace.replay.score.latency_mass import CELLS, Floats
from headrace.replay.score.placement import Placement
from headrace.replay.score.sums import Of
from headrace.replay.score.world import Happened
from headrace.solver.core.program.layout import sums as add_up

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints = npt.NDArray[np.int64]
KINDS = ("cluster", "model", "request_class")
MOST = 256
OTHERS = "others"


@dataclass(slots=True)
class Group:
    """One cluster, model or class: its sums, and its requests by end-to-end latency, TTFT and TBOT."""

    sums: Floats = field(default_factory=lambda: np.zeros(len(Of)))
    end_to_end: Floats = field(default_factory=lambda: np.zeros(CELLS))
    ttft: Floats = field(default_factory=lambda: np.zeros(CELLS))
    tbot: Floats = field(default_factory=lambda: np.zeros(CELLS))


class Groups:
    """All groups of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.groups: dict[str, Group] = {}
        self._routes: Sequence[object] = ()
        self._names: list[str] = []
        self._of_route: Ints = np.empty(0, np.int64)

    def add(self, placement: Placement, happened: Happened, cells: "Cells", seconds: float) -> None:
        """Add one tick."""
        self._map(placement)
        count, of_pair = len(self._names), self._of_route[placement.route]
        requests = happened.served * seconds
        by_route = self._of_route
        columns = {
            Of.OFFERED: _by(by_route, happened.first * seconds, count),
            Of.SHED: _by(by_route, happened.shed * seconds, count),
            Of.REFUSED: _by(by_route, happened.refused * seconds, count),
            Of.RETRIES: _by(by_route, happened.retried * seconds, count),
            Of.SERVED: _by(of_pair, requests, count),
            Of.COLD: _by(of_pair, happened.cold * seconds, count),
            Of.NETWORK: _by(of_pair, requests * placement.network_s, count),
            Of.ENGINE: _by(of_pair, requests * (happened.fixed_s + happened.decode_s - placement.network_s), count),
            Of.TTFT: _by(of_pair, requests * happened.ttft_s, count),
            Of.TBOT: _by(of_pair, requests * happened.behaviour.tbot_s[placement.engine], count),
        }
        masses = cells.by_group(of_pair, requests, count)
        for i, name in enumerate(self._names):
            group = self.groups[name]
            for place, values in columns.items():
                group.sums[place] += values[i]
            group.sums[Of.SECONDS] += seconds
            group.end_to_end += masses[0][i]
            group.ttft += masses[1][i]
            group.tbot += masses[2][i]

    def _map(self, placement: Placement) -> None:
        if self._routes is placement.routes:
            return
        self._routes = placement.routes
        names = [self._name(getattr(route, self.kind)) for route in placement.routes]
        self._names = sorted(set(names))
        number = {name: i for i, name in enumerate(self._names)}
        self._of_route = np.array([number[name] for name in names], dtype=np.int64)

    def _name(self, name: str) -> str:
        kept = name if name in self.groups or len(self.groups) < MOST else OTHERS
        self.groups.setdefault(kept, Group())
        return kept


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Where each pair's requests lie on the latency grid: end to end (P, K) for K lengths, TTFT and TBOT (P,)."""

    end_to_end: Ints
    ttft: Ints
    tbot: Ints

    def by_group(self, of_pair: Ints, requests: Floats, count: int) -> tuple[Floats, Floats, Floats]:
        """Give the three masses by group, each (count, CELLS)."""
        lengths = self.end_to_end.shape[1]
        spread = np.repeat(requests / lengths, lengths)
        whole = add_up((of_pair[:, None] * CELLS + self.end_to_end).ravel(), spread, count * CELLS)
        ttft = add_up(of_pair * CELLS + self.ttft, requests, count * CELLS)
        tbot = add_up(of_pair * CELLS + self.tbot, requests, count * CELLS)
        return whole.reshape(count, CELLS), ttft.reshape(count, CELLS), tbot.reshape(count, CELLS)


def _by(index: Ints, values: Floats, count: int) -> Floats:
    return add_up(index, values, count)
