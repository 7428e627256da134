"""What the core asks of a linear-program solver: min c.x subject to A x = b, l <= x <= u, many programs at once.

The core builds the arrays and judges the answers; an adapter (`headrace.solver.glop`) holds the library. Programs of
one call are independent of each other, so an adapter may solve them in any order or on threads; each answer may depend
on nothing but its own program.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]
Made = TypeVar("Made")


class Method(StrEnum):
    """How to solve: the rungs of the ladder that are the linear solver's own, in the order they are tried."""

    DUAL = "DUAL"
    PRIMAL = "PRIMAL"
    UNSCALED = "UNSCALED"


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """min cost.x subject to A x = rhs, lower <= x <= upper; n columns, m rows, A in compressed sparse row form.

    Attributes:
        cost: (n,) objective per unit of each column.
        lower: (n,) finite lower bounds.
        upper: (n,) upper bounds; infinity allowed.
        rhs: (m,) right-hand sides.
        row_start: (m + 1,) where each row's entries begin in `columns`.
        columns: (entries,) column of each entry, rising within a row.
        coefficients: (entries,) value of each entry.
        near: (m,) duals that may be close to the optimum's; a solver may begin there. None: nothing is known. It says
            how long it takes, and which of several equally good answers is found, and nothing else.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    rhs: Floats
    row_start: Indices
    columns: Indices
    coefficients: Floats
    near: Floats | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rhs), len(self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An answer that the linear solver calls optimal; the core checks it itself before it is believed.

    Attributes:
        values: (n,) the columns.
        duals: (m,) marginal cost of one more unit of each right-hand side.
        reduced_costs: (n,) cost - A^T duals.
        iterations: simplex iterations; None where the solver does not tell.
    """

    values: Floats
    duals: Floats
    reduced_costs: Floats
    iterations: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer. `reason` is a code in capitals, such as GLOP_ABNORMAL, then detail."""

    reason: str


class LinearSolver(Protocol):
    """Solves independent linear programs."""

    def solve(self, programs: Sequence[LinearProgram], method: Method) -> tuple[Solution | Failed, ...]:
        """Give one outcome per program, in their order. Never raises for what a program contains."""
        ...

    def each(self, tasks: Sequence["Callable[[LinearSolver], Made]"]) -> list[Made]:
        """Do tasks that are independent of each other, and give what each makes, in their order.

        A task is given the solver to use, so that an adapter may do them beside each other. What a task raises is
        raised.
        """
        ...

    def pause(self) -> None:
        """Say, in a task that thinks for long, that another one may go first."""
        ...
