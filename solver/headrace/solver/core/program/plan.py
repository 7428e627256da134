"""What a policy decides: how much of each row goes to each pool, how much is shed, and the prices if it knows any."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from headrace.schemas.weights import SnapshotStatus
from headrace.solver.core.profile.load_cost import LoadCost
from headrace.solver.core.profile.segments import Segments
from headrace.solver.core.program.layout import Layout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """The load cost of each profile in use, by profile id.

    Attributes:
        exact: what is minimised, its mean over how a load swings.
        chords: the same as the program sees it.
        steady: the same of a load that stands still: what an engine's latency at its planned load is.
    """

    exact: dict[str, LoadCost]
    chords: dict[str, Segments]
    steady: dict[str, LoadCost]


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Marginal prices in ms per unit of work: of one more of each row (R,), and of each pool's engine time (G,)."""

    row: Floats
    pool: Floats


@dataclass(frozen=True, slots=True)
class Effort:
    """How large the programs were and what they took."""

    columns: int = 0
    rows: int = 0
    components: int = 0
    iterations: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A policy's answer over a layout's R rows, H groups and P pairs; flows and loads are of work, as the layout's.

    Attributes:
        status: how good it is.
        rung: the rung of the ladder that answered.
        sentence: what happened, in words.
        flow: (P,) per second.
        shed: (R,) refused.
        load: (H,) on each group; its pools' flows, split.
        share: (P,) fractions of a row's *served* traffic; they add up to 1 in every row that may be served at all, rows
            without demand included.
        kept: (R,) rows whose weights are the previous ones, restricted to engines they may still use, engine by engine.
        prices: None where the policy knows none.
        objective: true cost of the plan, ms x RPS, shedding included; None where it was not priced.
        gap: (objective - certified lower bound) / objective; None where there is no bound.
        effort: size of the computation.
        split: (E,) how a pool's share is split over its engines; None to go by `load`, and by capacity within a group.
        answer: what the policy would have done, had nobody's weights been kept for their own sake; None where it did.
        curves: the chords it was solved on, where they are not those that the settings alone give.
        score_errors: (G,) errors that a feedback policy wants to see again at its next tick; None for the others.
    """

    status: SnapshotStatus
    rung: str
    sentence: str
    flow: Floats
    shed: Floats
    load: Floats
    share: Floats
    kept: npt.NDArray[np.bool_]
    prices: Prices | None = None
    objective: float | None = None
    gap: float | None = None
    effort: Effort = field(default_factory=Effort)
    split: Floats | None = None
    score_errors: Floats | None = None
    answer: "Plan | None" = None
    curves: Curves | None = None

    def with_split(self, load: Floats, split: Floats) -> "Plan":
        """Give the same with another split over the groups and engines of each pool."""
        return replace(self, load=load, split=split)

    def with_errors(self, score_errors: Floats) -> "Plan":
        """Give the same with errors to remember."""
        return replace(self, score_errors=score_errors)


def normalised(layout: Layout, weight: Floats) -> Floats:
    """Scale non-negative pair weights so that they add up to 1 in each row; rows that add up to 0 stay 0."""
    scaled, some = np.zeros_like(weight), np.flatnonzero(weight != 0.0)
    total = layout.per_row(weight)[layout.pair_row[some]]
    scaled[some] = np.divide(weight[some], total, out=np.zeros_like(total), where=total > 0.0)
    return scaled


def by_shares(layout: Layout, rung: str, share: Floats, how: str) -> Plan:
    """Give the plan of a policy that knows shares and nothing else: all demand goes by them, whatever fits."""
    flow = share * layout.demand[layout.pair_row]
    return Plan(
        status=SnapshotStatus.PROPORTIONAL,
        rung=rung,
        sentence=f"{layout.sent_rps(flow):.1f} RPS routed {how}",
        flow=flow,
        shed=np.maximum(layout.demand - layout.per_row(flow), 0.0),
        load=split_by_capacity(layout, flow),
        share=share,
        kept=np.zeros(len(layout.rows), dtype=np.bool_),
    )


def split_by_capacity(layout: Layout, flow: Floats) -> Floats:
    """Split each pool's flow over its groups in proportion to capacity, (H,)."""
    pool_flow = layout.per_pool(flow)
    return pool_flow[layout.group_pool] * layout.group_capacity / layout.pool_capacity[layout.group_pool]


def utilisation(layout: Layout, plan: Plan) -> Floats:
    """Give the load of each group as a share of its capacity, (H,)."""
    return plan.load / layout.group_capacity
