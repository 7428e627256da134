"""The versions held: any of them as it stood, and no more of them than the bounds allow."""

from hypothesis import given
from hypothesis import strategies as st

from console_inputs import committed
from dataplane_inputs import route_weights
from headrace.infra.console.core.timeline import Bounds, Timeline
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import Protected, RouteWeights, Snapshot


def at(version: int, *routes: RouteWeights, **fields: object) -> Snapshot:
    return committed(routes, version, 1_000 * version, **fields)


def told(timeline: Timeline, *snapshots: Snapshot) -> Timeline:
    before: dict[bytes, RouteWeights] = {}
    for snapshot in snapshots:
        now = {route.key: route for route in snapshot.routes}
        changed = {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
        timeline.take(snapshot, changed)
        before = now
    return timeline


A1, A3 = route_weights({"x": 1_000_000}, cluster="A"), route_weights({"y": 1_000_000}, cluster="A", version=3)
B1 = route_weights({"x": 1_000_000}, cluster="B")


def test_a_past_version_has_each_route_as_it_stood_then() -> None:
    timeline = told(Timeline(Bounds(10, 1_000)), at(1, A1, B1), at(2, A1, B1), at(3, A3))
    second, third = timeline.at(2), timeline.at(3)
    assert second is not None
    assert third is not None
    assert second.routes == (A1, B1)
    assert second.commit.version == 2
    assert third.routes == (A3,)


def test_a_version_before_the_oldest_is_not_held_and_one_that_is_missing_is_the_one_before_it() -> None:
    timeline = told(Timeline(Bounds(10, 1_000)), at(5, A1), at(8, A3))
    assert timeline.at(4) is None
    found = timeline.at(7)
    assert found is not None
    assert found.commit.version == 5


def test_an_older_version_than_the_newest_is_not_taken() -> None:
    timeline = told(Timeline(Bounds(10, 1_000)), at(5, A1))
    assert not timeline.take(at(5, A3), {A3.key})
    assert timeline.at() == timeline.at(5)


def test_versions_beyond_the_bound_go_oldest_first_and_what_still_stands_stays() -> None:
    timeline = told(Timeline(Bounds(2, 1_000)), at(1, A1, B1), at(2, A1, B1), at(3, A3, B1), at(4, A3, B1))
    assert [commit.version for commit in timeline.commits()] == [3, 4]
    found = timeline.at(3)
    assert found is not None
    assert found.routes == (A3, B1)
    assert timeline.history(RouteKey("A", "m", "default")) == ((3, A3),)
    assert timeline.at(2) is None


def test_protections_that_stand_are_counted_once() -> None:
    acts = (Protected("x", "outlier", 0.5, "slow"),)
    bare = told(Timeline(Bounds(10, 1_000)), at(1, A1), at(2, A1))
    held = told(Timeline(Bounds(10, 1_000)), at(1, A1, protections=acts), at(2, A1, protections=acts))
    assert held.parts == bare.parts + 1


CLUSTERS = ("A", "B", "C")
STEPS = st.lists(st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 3), max_size=3), min_size=1, max_size=12)


@given(STEPS, st.integers(1, 6), st.integers(1, 30))
def test_whatever_is_held_is_as_it_was_given_and_within_the_bounds(
    steps: list[dict[str, int]], versions: int, parts: int
) -> None:
    given_ = [
        at(v, *(route_weights({f"e{n}": 1_000_000}, cluster=c, version=v) for c, n in step.items()))
        for v, step in enumerate(steps, 1)
    ]
    timeline = told(Timeline(Bounds(versions, parts)), *given_)
    held = timeline.commits()
    assert len(held) <= versions
    assert len(held) == 1 or timeline.parts <= parts
    for commit in held:
        found = timeline.at(commit.version)
        assert found is not None
        assert found.routes == given_[commit.version - 1].routes
    standing = {route.key for commit in held for route in given_[commit.version - 1].routes}
    assert all(timeline.history(RouteKey(c, "m", "default")) for c in CLUSTERS if f"{c}|m|default".encode() in standing)
