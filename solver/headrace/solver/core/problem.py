"""What a tick is given: rows of demand, engines with effective capacity, round trips, profiles. All already valid.

Units: flow in requests per second (RPS), durations in seconds, cost in ms per request. Capacities are in requests of
work 1, as they were measured with. Sequences are sorted by id, so that the same content is the same problem whatever
order the records came in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.ids import RouteKey
from headrace.schemas.state import OutcomePane
from headrace.schemas.weights import InputOffsets, Reason


@dataclass(frozen=True, slots=True)
class Row:
    """Demand of one route. `requires` must all be capabilities of an engine; `residency` empty allows any.

    `demand_held` says that nothing is heard of the demand any more, and the last known one stands. `work` is what one
    of its requests costs an engine, relative to those that capacities and profiles were measured with; above 0.
    """

    route: RouteKey
    tier: int
    demand_rps: float
    requires: tuple[str, ...] = ()
    residency: tuple[str, ...] = ()
    demand_held: bool = False
    work: float = 1.0

    @property
    def demand_work(self) -> float:
        """What its demand loads engines with, work per second: to be held against capacities."""
        return self.demand_rps * self.work


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why an engine may take no traffic at all this tick."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class Mix:
    """Work of the requests that an engine was sent: `mean` of one, and `grain` of the one that a unit of work is of.

    The mean turns requests into work; a sum of work varies as if all of it came `grain` at a time.
    """

    mean: float = 1.0
    grain: float = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What an engine's own signals say of its window; latencies are of whole requests, waiting in its queue included.

    Attributes:
        rate_rps: requests that it finished; work, once the problem is `in_work`.
        latency_s: mean over the window, at the output length of its profile.
        smoothed_s: the same, smoothed: what a feedback policy steers by.
        samples: requests behind the means.
        inside: requests in service or waiting, just now; None where not measured.
        waiting: of these, those that wait; 0 where not measured.
        as_they_came: whether the latencies are of requests as they came, and not at the profile's output length.
    """

    rate_rps: float
    latency_s: float
    smoothed_s: float
    samples: int
    inside: float | None = None
    waiting: float = 0.0
    as_they_came: bool = False


@dataclass(frozen=True, slots=True)
class Throughput:
    """What goes through an engine, and what is inside it.

    Attributes:
        signal_ms: event time of its newest signal.
        running: requests in service then.
        waiting: requests in its queue then.
        recent_rps: what it finished per second over its newest periods; None where that was not measured. Requests,
            or work once the problem is `in_work`.
        window_rps: the same over the window.
        window_s: how much of the window is covered.
    """

    signal_ms: int
    running: float
    waiting: float
    recent_rps: float | None
    window_rps: float
    window_s: float


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How an engine's requests ended over its window, of all models, seen from one vantage; at least one pane.

    Attributes:
        panes: oldest first.
        pane_ms: length of each.
    """

    panes: tuple[OutcomePane, ...]
    pane_ms: int

    @property
    def failed(self) -> int:
        """Requests that the engine failed."""
        return sum([pane.failed for pane in self.panes])

    @property
    def requests(self) -> int:
        """All that ended."""
        return sum([pane.succeeded + pane.failed for pane in self.panes])

    @property
    def span_s(self) -> float:
        """How long that took, from the beginning of the first pane to the end of the last."""
        return (self.panes[-1].end_ms - self.panes[0].end_ms + self.pane_ms) / 1000


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine as this tick sees it.

    `factor` (0..1) scales capacity for health, staleness and penalties; `factor_sentence` says by what. `exclusion` is
    not None where the engine is out, whatever its capacity. `latency_sentence` says why its profile is a stand-in.
    `measured` is None where it has had no traffic: nothing is known of its speed now. `throughput` is None where it
    does not say what is inside it. `mix` is that of the requests behind both. `outcomes` is None where nobody counted
    how its requests ended.
    """

    engine_id: str
    site: str
    models: tuple[str, ...]
    capabilities: tuple[str, ...]
    residency: tuple[str, ...]
    address: str | None
    profile_id: str
    ready_replicas: int
    capacity_rps_per_replica: float
    factor: float = 1.0
    factor_sentence: str = ""
    latency_sentence: str = ""
    exclusion: Exclusion | None = None
    measured: Measured | None = None
    throughput: Throughput | None = None
    mix: Mix = Mix()
    outcomes: Outcomes | None = None

    @property
    def capacity_rps(self) -> float:
        """Effective capacity, RPS of work 1: ready replicas x capacity of one x factor; 0 where excluded."""
        return 0.0 if self.exclusion else self.ready_replicas * self.capacity_rps_per_replica * self.factor


@dataclass(frozen=True, slots=True)
class Pin:
    """An operator's bounds on what a cluster sends an engine, as shares of each route's demand; by `sentence`."""

    cluster: str
    engine_id: str
    least: float
    most: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One tick's problem. `network_s[(cluster, site)]` is a round trip; None = all probes lost, absent = unknown.

    `lag_ms` is how old the newest word of any engine is: how late everything here is. `demand_until_ms` is up to when
    (event time) demand is known, None where none was ever told. `frozen` says who wants all
    weights to stay as they are, until when and why; empty where nobody does. `pins` are sorted by engine, then cluster.
    `in_work` says that what engines measured has been turned from requests into work (`inputs/in_work`).
    """

    rows: tuple[Row, ...]
    engines: tuple[Engine, ...]
    network_s: Mapping[tuple[str, str], float | None]
    profiles: Mapping[str, LatencyProfile]
    inputs: tuple[InputOffsets, ...] = ()
    lag_ms: int = 0
    demand_until_ms: int | None = None
    frozen: str = ""
    pins: tuple[Pin, ...] = ()
    in_work: bool = False
