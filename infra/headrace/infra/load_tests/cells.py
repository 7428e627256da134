"""The cells of one row of a load test as numbers; what is wrong is told by line, the file's own column, value.

missing    empty, nan, none ...     the row is left out
wrong      no number, or out of bounds in the column's own unit
"""

import math
from collections.abc import Mapping

from headrace.infra.load_tests.csv_table import CsvRow
from headrace.schemas.check_fleet import MAX_RPS, MAX_SECONDS
from headrace.solver.core.profile.load_test import LEAST

SECONDS = {"ms": 1e-3, "s": 1.0}
NOTHING = frozenset({"", "nan", "na", "n/a", "null", "none", "-"})
"""What stands for a value that was not measured."""
UNLIMITED = frozenset({"inf", "infinity"})
"""The request rate of a closed loop, for tools that always state one."""
_MAY_BE_0 = ("tbot", "tpot")
"""Of one token there is no time between tokens."""


class Cells:
    """The cells of one row; what is wrong with them goes to `problems`, what was not measured to `missing`."""

    def __init__(self, row: CsvRow, called: Mapping[str, str], problems: list[str]) -> None:
        self.place = f"row {row.line}"
        self.missing: list[str] = []
        self._row = row
        self._called = called
        self._problems = problems

    def text(self, column: str, otherwise: str = "") -> str:
        """Give a cell as it is."""
        return self._row.cells.get(column, "") or otherwise

    def has(self, column: str) -> bool:
        """Say whether the row has something there."""
        return bool(self.text(column))

    def kept(self, load: str) -> bool:
        """Say whether this load is the one that the stage kept."""
        return self.has(load) and self.text(load).lower() not in NOTHING | UNLIMITED

    def in_file(self, column: str) -> bool:
        """Say whether the file has the column at all."""
        return column in self._row.cells

    def called(self, column: str) -> str:
        """Give what the file calls a column."""
        return self._called.get(column, column)

    def number(self, column: str) -> float:
        """Read a number within the bounds of its column; NaN where it is missing or wrong."""
        cell = self.text(column)
        if cell.lower() in NOTHING:
            self.missing.append(self.called(column))
            return math.nan
        try:
            value = float(cell)
        except ValueError:
            return self._wrong(column, repr(cell[:40]), "a number")
        name, _, unit = column.rpartition("_")
        low = 0.0 if name in _MAY_BE_0 else LEAST
        high = MAX_SECONDS / SECONDS[unit] if unit in SECONDS else MAX_RPS
        if low <= value <= high:
            return value
        above = "at least 0" if low == 0.0 else "above 0"
        return self._wrong(column, cell[:40], f"{above}, at most {high:g}")

    def seconds(self, *names: str) -> tuple[str, float] | None:
        """Give (column, seconds) of the first of these times that the row has, in ms or in s."""
        for name in names:
            for unit, factor in SECONDS.items():
                column = f"{name}_{unit}"
                if self.has(column):
                    return column, self.number(column) * factor
        return None

    def _wrong(self, column: str, shown: str, allowed: str) -> float:
        self._problems.append(f"{self.place}: {self.called(column)} is {shown}; {allowed}")
        return math.nan
