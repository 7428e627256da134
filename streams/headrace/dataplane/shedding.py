"""Which sessions are shed: new conversations before established ones, within the share that the snapshot sheds.

    new          = min(1, ratio / (1 - q))               q = share of established conversations among the requests
    established  = max(0, (ratio - (1 - q)) / q)         so that (1 - q) new + q established = ratio

Both grow with the ratio and new >= established, so a session shed at a ratio is shed at every higher one, and a
conversation that was let in as a new one is kept as an established one. Requests of unknown standing are shed at the
ratio itself.
"""

from dataclasses import dataclass
from typing import Final

_MEMORY: Final = 2_000
"""Requests over which the mix is averaged, once as many were seen."""


def split(ratio: float, established: float) -> tuple[float, float]:
    """Give the shares to shed of (new, established) conversations, where `established` of the requests are such."""
    new = 1.0 - established
    of_new = 1.0 if ratio >= new and ratio > 0 else ratio / new if ratio > 0 else 0.0
    of_established = max(0.0, ratio - new) / established if established > 0 else ratio if ratio >= 1 else 0.0
    return min(1.0, of_new), min(1.0, of_established)


@dataclass(frozen=True, slots=True)
class Mix:
    """The share of established conversations, as averaged over `seen` requests; one half before any was seen."""

    established: float = 0.5
    seen: int = 0

    def after(self, new: int, established: int) -> "Mix":
        """Give the mix after so many more requests of each kind; the latest few thousand count."""
        more = new + established
        if more == 0:
            return self
        kept = min(self.seen, max(0, _MEMORY - more))
        total = kept + more
        return Mix((self.established * kept + established) / total, total)
