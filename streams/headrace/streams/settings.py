"""Settings of the streams, with their bounds. Pure: `headrace.infra.configuration` reads them."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

from headrace.schemas.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """Settings of the fold and of the worker that runs it.

    The fold's settings are part of the state's meaning: a worker that is restarted with another pane length drops the
    panes it finds and starts its windows anew (`headrace.streams.core.panes`).

    Attributes:
        window_ms: length of the sliding window, event time; a whole number of panes.
        pane_ms: length of a pane, the window's step.
        grace_ms: how far behind its key's newest event time a signal may come and still be applied.
        tau_bad_ms: time constant of the smoothing of a latency or round trip that gets worse.
        tau_good_ms: time constant of the smoothing of a latency or round trip that gets better.
        tau_demand_ms: time over which demand is averaged at most, since its last step.
        step_share: share of the smoothed demand beyond which a change may be a step, where the average begins anew.
        step_sigmas: deviations of a Poisson count beyond which a change may be a step; a step exceeds both bounds.
        min_coverage: coverage of the window below which a state is not valid (LOW_COVERAGE).
        batch_max: most signals that are folded before the states they touch are written.
        batch_wait_ms: how long a signal waits for others to be folded with; up to ten times as long behind a backlog.
        group_id: consumer group of the workers; also the name of the Faust application.
        session_timeout_ms: silence after which the broker takes a dead worker's partitions away; at least what the
            broker allows (Kafka's `group.min.session.timeout.ms`, 6 s).
        data_dir: folder for Faust's own files; it is made if it is not there. Nothing that matters is kept in it.
        stall_ms: time without progress while signals wait, from which the watchdog ends the process.
        start_wait_ms: longest time that the start waits for the topics, and for the fleet to be read to its end.
        metrics_port: where Prometheus finds the worker's metrics; 0 = nowhere. Of several workers started together
            (`--workers`) each takes the next one.
        metrics_host: the address that the metrics are served at.
    """

    window_ms: Annotated[int, Ge(1_000), Le(600_000)] = 10_000
    pane_ms: Annotated[int, Ge(100), Le(60_000)] = 1_000
    grace_ms: Annotated[int, Ge(0), Le(300_000)] = 2_000
    tau_bad_ms: Annotated[float, Gt(0), Le(600_000)] = 2_000.0
    tau_good_ms: Annotated[float, Gt(0), Le(600_000)] = 10_000.0
    tau_demand_ms: Annotated[float, Gt(0), Le(600_000)] = 30_000.0
    step_share: Annotated[float, Ge(0), Le(10)] = 0.05
    step_sigmas: Annotated[float, Ge(0), Le(100)] = 4.0
    min_coverage: Annotated[float, Ge(0), Le(1)] = 0.1
    batch_max: Annotated[int, Ge(1), Le(100_000)] = 2_000
    batch_wait_ms: Annotated[int, Ge(1), Le(10_000)] = 100
    group_id: str = "headrace-streams"
    session_timeout_ms: Annotated[int, Ge(1_000), Le(1_800_000)] = 10_000
    data_dir: str = ".headrace/streams"
    stall_ms: Annotated[int, Ge(5_000), Le(3_600_000)] = 60_000
    start_wait_ms: Annotated[int, Ge(1_000), Le(600_000)] = 60_000
    metrics_port: Annotated[int, Ge(0), Le(65_535)] = 0
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        """Hold the lengths against each other.

        Raises:
            InvalidInputError: the window is no whole number of panes, or too short for the panes that may still change.
        """
        problems: list[str] = []
        if self.window_ms % self.pane_ms:
            problems.append(f"streams.window_ms is {self.window_ms}; must be a multiple of pane_ms {self.pane_ms}")
        shortest = self.grace_ms + 3 * self.pane_ms
        if self.window_ms < shortest:
            problems.append(f"streams.window_ms is {self.window_ms}; at least grace_ms + 3 pane_ms = {shortest}")
        if problems:
            raise InvalidInputError("streams settings", tuple(problems))

    @property
    def panes(self) -> int:
        """Number of panes in the window."""
        return self.window_ms // self.pane_ms
