"""Why a weight is what it is, for the page: `headrace explain`'s own answer, one at a time, and kept for a while.

Computing a tick again reads the input topics up to where it had read them: seconds on a large system. So one runs at a
time, a second asker of the same waits for the first's answer, and the newest answers are kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable

from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport

Explain = Callable[[AskedWeight, Wanted], WeightReport]
MAX_KEPT = 64


class Explainer:
    """Answers with `explain`, and remembers."""

    def __init__(self, explain: Explain) -> None:
        self._explain = explain
        self._one_at_a_time = threading.Lock()
        self._kept: OrderedDict[tuple[AskedWeight, int], WeightReport] = OrderedDict()

    def __call__(self, asked: AskedWeight, version: int) -> WeightReport:
        """Give the answer for one version.

        Raises:
            HeadraceError: history does not hold it, or it cannot be computed again.
        """
        with self._one_at_a_time:
            found = self._kept.get((asked, version))
            if found is None:
                found = self._explain(asked, Wanted(version=version, text=f"version {version}"))
                self._kept[asked, version] = found
                while len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)
            return found
