"""Ejection: an engine that alarmed is left out for a time that doubles, and never too many of them at once.

    duration = min(base x 2^k, longest) x (1 - jitter x u),   u in [0, 1) from a hash of (data plane, engine, k)

k is the number of ejections before, less one for each `longest` that the engine has stayed in since. The jitter keeps
data planes from letting an engine back at the same instant. Of a route's weight at most a share is out: ejections count
in the order in which they began, and one that would exceed the share has no effect while it would. Yet one engine may
always be out for its errors, the first, if its sessions have somewhere to go: of three equals each is a third. What it
may weigh is then for the panic threshold to say. Late first tokens are no such reason: they are held against what a
profile promises, and that may be wrong for all alike.

Where the clock steps back, an ejection stands until it is further back than the ejection is long; then it is void:

    void | at_ms - length ─── stands ─── at_ms ─── stands ─── until_ms | over

Source: outlier detection of Envoy (base ejection time, maximum ejection per cent, always one host).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import xxhash

from headrace.dataplane.guards.contract import Cause
from headrace.dataplane.settings import GuardSettings


@dataclass(frozen=True, slots=True)
class Ejection:
    """One engine left out from `at_ms` to before `until_ms`, for the `times`-th time."""

    engine_id: str
    cause: Cause
    at_ms: int
    until_ms: int
    times: int

    @property
    def from_ms(self) -> int:
        """The first instant that it holds at: as long before its beginning as it lasts, for clocks that differ."""
        return 2 * self.at_ms - self.until_ms

    def lasts(self, now_ms: int) -> bool:
        """Say whether the engine is out at this instant."""
        return self.from_ms <= now_ms < self.until_ms


def eject(
    engine_id: str, cause: Cause, before: Ejection | None, now_ms: int, settings: GuardSettings, seed: str
) -> Ejection:
    """Give the ejection that follows `before`, the engine's last one; `seed` names the data plane."""
    k = 0
    if before is not None:
        stayed_ms = max(0, now_ms - before.until_ms)
        k = max(0, before.times - stayed_ms // settings.ejection_max_ms)
    longest = min(settings.ejection_base_ms << min(k, 32), settings.ejection_max_ms)
    u = xxhash.xxh3_64_intdigest(f"{seed}|{engine_id}|{k}".encode()) / 2**64
    duration_ms = max(1, round(longest * (1 - settings.ejection_jitter * u)))
    return Ejection(engine_id, cause, now_ms, now_ms + duration_ms, k + 1)


def within_share(
    ejections: Iterable[Ejection], ppm: Mapping[str, int], share: float, replaceable: Collection[str] = ()
) -> frozenset[str]:
    """Give the ejected engines that are left out of a route of these weights: at most `share` of their sum, or one.

    Of those that began at the same instant, the first given counts first. `replaceable` engines may be that one, where
    their requests failed; none at a share of 0.
    """
    left = int(share * sum(ppm.values()))
    out: set[str] = set()
    for ejection in sorted(ejections, key=lambda e: e.at_ms):
        name, weight = ejection.engine_id, ppm.get(ejection.engine_id, 0)
        alone = left > 0 and not out and ejection.cause is Cause.ERRORS and name in replaceable
        if 0 < weight <= left or (weight > 0 and alone):
            left -= weight
            out.add(name)
    return frozenset(out)
