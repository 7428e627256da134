"""What a router knows of one route that outlives a snapshot: retries, requests under way, sessions let go, arrivals.

Everything here changes in place, from any thread, by operations that are atomic or whose loss does no harm; the router
keeps it while the route exists.
"""

from collections import deque

from headrace.dataplane.guards.in_flight import InFlight
from headrace.dataplane.guards.surge import Surge
from headrace.dataplane.installation import RouteName
from headrace.dataplane.retry_budget import RetryBudget
from headrace.dataplane.route_table import SHED_SHIFT, RouteTable
from headrace.dataplane.settings import DataPlaneSettings
from headrace.dataplane.shedding import Mix, split


class Released:
    """Where sessions went that a crowded engine let go: they stay there, since their cache is there now.

    Remembers at least the last `most` of them, and at most twice as many: two dictionaries, of which the older one is
    dropped when the younger is full. Data planes do not share it, so a released session that changes its data plane
    may begin at its home again.

    Attributes:
        used: whether any session was ever let go.
    """

    __slots__ = ("_most", "_old", "_young", "used")

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[int, str] = {}
        self._old: dict[int, str] = {}
        self.used = False

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, point: int) -> str | None:
        """Give the engine of the session at `point`; None where it was not let go, or long ago."""
        return self._young.get(point) or self._old.get(point)

    def put(self, point: int, engine_id: str) -> None:
        """Remember an engine; it replaces the one before."""
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
        self._young[point] = engine_id
        self.used = True


class LiveRoute:
    """The changing side of one route.

    Attributes:
        budget: its retries.
        in_flight: its requests under way.
        released: its sessions that were let go.
        mix: new and established conversations, as of the last snapshot.
        surge: whether more of its requests arrive than the weights know of.
        crowded_sign, released_sign, surge_sign: what the router's watch is told where there are such engines, or
            sessions, or a surge.
        shed_ratios: what is shed of (new, established) ones; fixed from snapshot to snapshot.
    """

    __slots__ = (
        "_established",
        "_new",
        "budget",
        "crowded_sign",
        "in_flight",
        "mix",
        "released",
        "released_sign",
        "shed_ratios",
        "surge",
        "surge_sign",
    )

    def __init__(self, settings: DataPlaneSettings, name: RouteName) -> None:
        self.crowded_sign = f"crowded {name}"
        self.released_sign = f"released {name}"
        self.surge_sign = f"surge {name}"
        self.budget = RetryBudget(settings.retry_burst)
        self.in_flight = InFlight(settings.guards)
        self.released = Released(settings.guards.released_max)
        self.surge = Surge(settings.guards)
        self.mix = Mix()
        self.shed_ratios = (0.0, 0.0)
        self._new: deque[None] = deque(maxlen=100_000)
        self._established: deque[None] = deque(maxlen=100_000)

    def see(self, *, established: bool) -> None:
        """Count a request whose standing is known."""
        (self._established if established else self._new).append(None)

    def install(self, table: RouteTable, demand_until_ms: int | None) -> None:
        """Go by a new snapshot's weights, and settle the mix that was seen under the one before.

        Args:
            table: the route's weights.
            demand_until_ms: up to when they know of its demand; None where that is not told.
        """
        self.mix = self.mix.after(_drained(self._new), _drained(self._established))
        self.shed_ratios = split(table.weights.shed_ratio, self.mix.established)
        self.in_flight.weigh(table.ppm)
        self.surge.plan(table.weights.demand_rps, demand_until_ms)


def sheds(table: RouteTable, live: LiveRoute | None, point: int, tier: int | None, established: bool | None) -> bool:  # noqa: FBT001 - as in Asked
    """Say whether the snapshot sheds the session at `point`; by the share of its like where that is known."""
    ratios = None if live is None or established is None else live.shed_ratios
    return point >> SHED_SHIFT < table.shed_limit(tier, None if ratios is None else ratios[bool(established)])


def _drained(seen: deque[None]) -> int:
    count = len(seen)
    for _ in range(count):
        seen.popleft()
    return count
