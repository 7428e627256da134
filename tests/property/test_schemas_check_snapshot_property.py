"""Checking what changed gives the same verdict as checking everything, where the rest was proven."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.assembly import digest_of, summands_of
from headrace.schemas.check_snapshot import check_snapshot
from headrace.schemas.digest import Summands
from headrace.schemas.weights import RouteWeights, Snapshot
from solver_ticks import route_of, snapshot_of, stamp

NAMES = tuple(f"c{i}|m|default" for i in range(5))
HALF = {"e1": 500_000, "e2": 500_000}
PROVEN, _ = snapshot_of(dict.fromkeys(NAMES[:4], HALF), stamp(1, 1))


@st.composite
def successors(draw: st.DrawFn) -> Snapshot:
    """Keep, rewrite, break, drop or add routes, and now and then forget it in the digest."""
    routes: dict[bytes, RouteWeights] = {}
    old = {route.key: route for route in PROVEN.routes}
    for name in NAMES:
        fate = draw(st.sampled_from(("keep", "rewrite", "break", "drop")))
        rewritten = route_of(name, {"e1": 1_000_000}, 1, 2)
        if fate == "keep" and name.encode() in old:
            routes[name.encode()] = old[name.encode()]
        elif fate != "drop":
            routes[name.encode()] = replace(rewritten, shed_ratio=2.0) if fate == "break" else rewritten
    honest = draw(st.booleans())
    digest = digest_of(routes) if honest else PROVEN.commit.digest
    commit = replace(PROVEN.commit, version=2, route_count=len(routes), digest=digest)
    return Snapshot(commit, tuple(routes[key] for key in sorted(routes)))


@given(successors())
def test_the_verdict_is_the_same_with_and_without_what_was_proven(snapshot: Snapshot) -> None:
    assert check_snapshot(snapshot, PROVEN) == check_snapshot(snapshot)


@given(successors(), st.sets(st.sampled_from(NAMES)))
def test_the_verdict_is_the_same_where_parts_of_the_digest_are_known(snapshot: Snapshot, told: set[str]) -> None:
    def known(routes: tuple[RouteWeights, ...]) -> dict[bytes, int]:
        return summands_of({route.key: route for route in routes if route.key.decode() in told})

    parts = Summands(known(snapshot.routes), known(PROVEN.routes))
    assert check_snapshot(snapshot, PROVEN, parts) == check_snapshot(snapshot)
