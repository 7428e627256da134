"""What was last told of a route, and from where it went when it began to move: what set it moving may still be why."""

from dataclasses import dataclass

from headrace.schemas.weights import RouteWeights, Snapshot

RUN_MS = 15_000
"""Weights follow what acts for several ticks; moves within so long of the first are one run."""


@dataclass(frozen=True, slots=True)
class Told:
    """A route as it was last told, in its snapshot.

    `began` is the snapshot that the first move of its run went out from, `run_ms` that move's time; None before any.
    """

    snapshot: Snapshot
    route: RouteWeights
    began: Snapshot | None = None
    run_ms: int | None = None

    def earlier(self, now_ms: int) -> Snapshot:
        """Give the snapshot from which a move now goes out, with the moves of its run before it."""
        if self.began is None or self.run_ms is None or now_ms - self.run_ms > RUN_MS:
            return self.snapshot
        return self.began

    def moved(self, snapshot: Snapshot, route: RouteWeights) -> "Told":
        """Give what is told now that it has moved."""
        now_ms = snapshot.commit.tick_ms
        began = self.earlier(now_ms)
        run_ms = now_ms if began is self.snapshot or self.run_ms is None else self.run_ms
        return Told(snapshot, route, began, run_ms)
